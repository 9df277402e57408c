/** Pairs of groups that this person has called different: they are not asked again. */
const stored = (clusteringId: string): string => `temi-different-${clusteringId}`;
const pair = (a: number, b: number): string => `${Math.min(a, b)}-${Math.max(a, b)}`;

function load(clusteringId: string, storage: Storage): Set<string> {
  try {
    const pairs: unknown = JSON.parse(storage.getItem(stored(clusteringId)) ?? "[]");
    return new Set(Array.isArray(pairs) ? pairs.filter((entry) => typeof entry === "string") : []);
  } catch {
    return new Set();
  }
}

export function areDifferent(clusteringId: string, a: number, b: number, storage: Storage = localStorage): boolean {
  return load(clusteringId, storage).has(pair(a, b));
}

export function noteDifferent(clusteringId: string, a: number, b: number, storage: Storage = localStorage): void {
  const pairs = load(clusteringId, storage).add(pair(a, b));
  try {
    storage.setItem(stored(clusteringId), JSON.stringify([...pairs]));
  } catch {
    // The pair is asked again, nothing worse.
  }
}
