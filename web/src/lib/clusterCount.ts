/** How the number of groups was found: `metrics.count` of a clustering. */
import type { Series } from "./chart";

export interface CountPoint {
  n_clusters: number;
  stability: number; // how far groupings of random parts of the photos agree
  score: number; // stability, and how seldom similar photos are separated
}

export interface ClusterCount {
  points: CountPoint[];
  suggested: number[]; // the best first
}

export function readCount(metrics: Record<string, unknown> | undefined): ClusterCount | null {
  const count = metrics?.count as Partial<ClusterCount> | undefined;
  return Array.isArray(count?.points) && Array.isArray(count.suggested) ? (count as ClusterCount) : null;
}

/** Up to three times the largest suggestion: beyond, the lines only fall. */
export function countSeries({ points, suggested }: ClusterCount): Series[] {
  const most = 3 * Math.max(10, ...suggested);
  const shown = points.filter(({ n_clusters }) => n_clusters <= most);
  return [
    { name: "score", kind: "main", points: shown.map(({ n_clusters, score }) => ({ x: n_clusters, y: score })) },
    { name: "stability", kind: "second", points: shown.map(({ n_clusters, stability }) => ({ x: n_clusters, y: stability })) },
  ];
}
