/** The order in which the wall showed its groups: the next group of a group is the next card. */
import type { Cluster } from "../api/types";

let visited: { clusteringId: string; id: number } | null = null;

/** The group that was opened last: the wall begins there again. */
export function rememberVisited(clusteringId: string, id: number): void {
  visited = { clusteringId, id };
}

export const lastVisited = (clusteringId: string): number => (visited?.clusteringId === clusteringId ? visited.id : -1);

let remembered: { clusteringId: string; ids: number[] } | null = null;

export function rememberOrder(clusteringId: string, ids: number[]): void {
  remembered = { clusteringId, ids };
}

/** Group ids in order, without empty ones but the one that is shown; new groups come last. */
export function groupOrder(clusteringId: string, clusters: readonly Cluster[], shown = -1): number[] {
  if (remembered?.clusteringId !== clusteringId) {
    rememberOrder(clusteringId, [...clusters].filter((cluster) => cluster.size).sort((a, b) => b.size - a.size).map((cluster) => cluster.cluster_id));
  }
  const known = remembered?.ids ?? [];
  const active = new Map(clusters.map((cluster) => [cluster.cluster_id, cluster]));
  const added = clusters.filter((cluster) => cluster.size && !known.includes(cluster.cluster_id)).map((cluster) => cluster.cluster_id);
  return [...known.filter((id) => active.get(id)?.size || id === shown), ...added];
}
