/** What groups look like after an edit, before the service has answered. */
import type { Cluster, OperationCreate } from "../api/types";
import type { Source } from "./edits";

type Transfer = Extract<OperationCreate, { kind: "move" | "exclude" }>;

export function preview(clusters: Cluster[], operation: OperationCreate, source?: Source): Cluster[] {
  switch (operation.kind) {
    case "rename":
      return clusters.map((cluster) =>
        cluster.cluster_id === operation.cluster_id ? { ...cluster, label: operation.label, named: true } : cluster,
      );
    case "merge":
      return merged(clusters, operation.cluster_ids, operation.into ?? null, operation.label ?? null);
    case "exclude":
    case "move":
      return transferred(clusters, operation, source);
    default:
      return clusters;
  }
}

/** The largest one stays unless `into` names another, as the service does it. */
export function survivor(clusters: Cluster[], ids: number[]): number {
  const members = clusters.filter((cluster) => ids.includes(cluster.cluster_id));
  members.sort((a, b) => b.size - a.size || a.cluster_id - b.cluster_id);
  return members[0]?.cluster_id ?? ids[0] ?? 0;
}

function merged(clusters: Cluster[], ids: number[], into: number | null, label: string | null): Cluster[] {
  const stays = into ?? survivor(clusters, ids);
  const gone = new Set(ids.filter((id) => id !== stays));
  const members = clusters.filter((cluster) => cluster.cluster_id === stays || gone.has(cluster.cluster_id));
  const size = members.reduce((sum, cluster) => sum + cluster.size, 0);
  return clusters
    .filter((cluster) => !gone.has(cluster.cluster_id))
    .map((cluster) =>
      cluster.cluster_id === stays
        ? { ...cluster, size, mean_probability: meanOf(members), label: label ?? cluster.label, named: cluster.named || label !== null }
        : cluster,
    );
}

function meanOf(members: Cluster[]): number | null {
  const size = members.reduce((sum, cluster) => sum + cluster.size, 0);
  const sum = members.reduce((total, cluster) => total + cluster.size * (cluster.mean_probability ?? 0), 0);
  return size ? sum / size : null;
}

/** Photos leave a group; with a known source the sizes change, too. */
function transferred(clusters: Cluster[], operation: Transfer, source?: Source): Cluster[] {
  const gone = new Set(operation.image_ids ?? []);
  const target = operation.kind === "move" ? (operation.cluster_id ?? null) : null;
  if (source && source.cluster_id === target) return clusters;
  return clusters.map((cluster) => {
    const examples = cluster.examples.filter((example) => !gone.has(example.image_id));
    let size = cluster.size;
    if (cluster.cluster_id === source?.cluster_id) size = Math.max(0, size - source.count);
    if (source && cluster.cluster_id === target) size += source.count;
    return size === cluster.size && examples.length === cluster.examples.length ? cluster : { ...cluster, size, examples };
  });
}
