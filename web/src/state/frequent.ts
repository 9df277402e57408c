/** The groups that photos were moved to in this browser, most often and latest first. */
const MAX = 40;
const stored = (clusteringId: string): string => `temi-targets-${clusteringId}`;

export function frequentTargets(clusteringId: string, storage: Storage = localStorage): number[] {
  const uses = load(clusteringId, storage);
  const counts = new Map<number, number>();
  for (const id of uses) counts.set(id, (counts.get(id) ?? 0) + 1);
  return [...counts.keys()].sort((a, b) => (counts.get(b) ?? 0) - (counts.get(a) ?? 0) || uses.indexOf(a) - uses.indexOf(b));
}

export function noteTarget(clusteringId: string, clusterId: number, storage: Storage = localStorage): void {
  const uses = [clusterId, ...load(clusteringId, storage)].slice(0, MAX);
  try {
    storage.setItem(stored(clusteringId), JSON.stringify(uses));
  } catch {
    // Only a convenience.
  }
}

function load(clusteringId: string, storage: Storage): number[] {
  try {
    const uses: unknown = JSON.parse(storage.getItem(stored(clusteringId)) ?? "[]");
    return Array.isArray(uses) ? uses.filter((id) => typeof id === "number") : [];
  } catch {
    return [];
  }
}
