/** How many photos an export will contain. */
import type { Cluster, ReviewReport } from "../api/types";

export interface ExportChoice {
  revision: number | null; // null: the current one
  groups: number[] | null; // null: all
  minProbability: number; // 0: all
  includeExcluded: boolean;
}

/** From the sizes of the groups, if they decide; null if photos must be counted one by one. */
export function countBySizes(choice: ExportChoice, clusters: Cluster[], excluded: number | null): number | null {
  if (choice.revision !== null || choice.minProbability > 0 || (choice.includeExcluded && excluded === null)) return null;
  const wanted = choice.groups === null ? null : new Set(choice.groups);
  const kept = clusters.filter((cluster) => !wanted || wanted.has(cluster.cluster_id));
  return kept.reduce((sum, cluster) => sum + cluster.size, 0) + (choice.includeExcluded ? (excluded ?? 0) : 0);
}

/** From the review: groups that are pure enough without known wrong photos, and confirmed photos of the others. */
export function countByPurity(choice: ExportChoice, report: ReviewReport): number {
  const wanted = choice.groups === null ? null : new Set(choice.groups);
  const kept = report.clusters.filter((row) => !wanted || wanted.has(row.cluster_id));
  const labels = kept.reduce((sum, row) => sum + (row.meets ? row.size : row.reviewed) - row.wrong, 0);
  return labels + (choice.includeExcluded ? report.excluded_images : 0);
}

interface Row {
  cluster_id: number | null;
}

/** Counts the JSON lines of the service that the export would contain; calls `onprogress` now and then. */
export async function countLines(
  body: ReadableStream<Uint8Array>, choice: ExportChoice, onprogress: (count: number) => void = () => undefined,
): Promise<number> {
  const wanted = choice.groups === null ? null : new Set(choice.groups);
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  let rest = "";
  let count = 0;
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return count;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const { cluster_id: group } = JSON.parse(line) as Row;
      if (group === null ? choice.includeExcluded : !wanted || wanted.has(group)) count += 1;
    }
    onprogress(count);
  }
}
