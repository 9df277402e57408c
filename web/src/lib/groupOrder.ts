/** Which groups the wall shows, and in which order. The view is in the address. */
import type { Cluster } from "../api/types";
import { bestMatches } from "./matches";

export type GroupSort = "size" | "confidence" | "similar" | "unnamed" | "name";

export interface GroupView {
  sort: GroupSort;
  text: string;
  hideNamed: boolean;
  showEmpty: boolean;
  near: number | null; // with `similar`: to this group
  groups: number | null; // shown as so many
}

export const SORTS: [GroupSort, string][] = [
  ["size", "Largest first"],
  ["confidence", "Least confident first"],
  ["unnamed", "Unnamed first"],
  ["name", "Name"],
  ["similar", "Similar to a group"],
];

export function viewOf(query: Record<string, string>): GroupView {
  const whole = (text = ""): number | null => (/^\d+$/.test(text) ? Number(text) : null);
  const near = whole(query.near);
  const sort = SORTS.find(([name]) => name === query.sort)?.[0] ?? "size";
  return {
    sort: sort === "similar" && near === null ? "size" : sort,
    text: query.q ?? "",
    hideNamed: query.hide === "named",
    showEmpty: query.empty === "1",
    near,
    groups: whole(query.groups),
  };
}

const bySize = (a: Cluster, b: Cluster): number => b.size - a.size || a.cluster_id - b.cluster_id;

/** The group that stays in a merge: a named one before an unnamed one, then the largest. */
export function preferred(clusters: readonly Cluster[]): Cluster | undefined {
  return [...clusters].sort((a, b) => Number(b.named) - Number(a.named) || bySize(a, b))[0];
}

export function arrange(clusters: readonly Cluster[], view: GroupView, similarity: ReadonlyMap<number, number> = new Map()): Cluster[] {
  const shown = clusters.filter((cluster) => (cluster.size > 0 || view.showEmpty) && !(view.hideNamed && cluster.named));
  const found = view.text.trim() ? bestMatches(shown, view.text, shown.length) : shown;
  return [...found].sort(comparison(view, similarity));
}

function comparison(view: GroupView, similarity: ReadonlyMap<number, number>): (a: Cluster, b: Cluster) => number {
  const near = (cluster: Cluster): number => (cluster.cluster_id === view.near ? 2 : (similarity.get(cluster.cluster_id) ?? -2));
  switch (view.sort) {
    case "confidence":
      return (a, b) => (a.mean_probability ?? 0) - (b.mean_probability ?? 0) || bySize(a, b);
    case "unnamed":
      return (a, b) => Number(a.named) - Number(b.named) || bySize(a, b);
    case "name":
      return (a, b) => Number(b.named) - Number(a.named) || a.label.localeCompare(b.label, undefined, { numeric: true }) || bySize(a, b);
    case "similar":
      return (a, b) => near(b) - near(a) || bySize(a, b);
    default:
      return bySize;
  }
}
