/** What becomes of the groups of an earlier clustering, in words and in the order to look at them. */
import type { Changes, GroupChange } from "../api/types";
import { count } from "./format";

export type Decision = GroupChange["suggested"];
export type Status = GroupChange["status"];

const ORDER: Status[] = ["vanished", "merged", "split", "kept"];

/** Those that change most first; of the same status the named, then the largest. */
export function byImportance(groups: readonly GroupChange[]): GroupChange[] {
  const moved = (group: GroupChange): number => (group.status === "kept" ? group.left + group.came : group.size);
  return [...groups].sort(
    (a, b) =>
      ORDER.indexOf(a.status) - ORDER.indexOf(b.status) ||
      Number(b.named) - Number(a.named) ||
      moved(b) - moved(a) ||
      a.cluster_id - b.cluster_id,
  );
}

export function countStatuses(groups: readonly GroupChange[]): [Status, number][] {
  return ORDER.map((status): [Status, number] => [status, groups.filter((group) => group.status === status).length]).filter(([, n]) => n > 0);
}

/** "Split into 2: 60 % and 40 % of it." */
export function describeChange(group: GroupChange, changes: Changes): string {
  const shares = group.into.map(({ share }) => `${Math.round(100 * share)} %`);
  const others = group.merged_with.map((id) => `“${changes.groups.find(({ cluster_id }) => cluster_id === id)?.label ?? id}”`);
  switch (group.status) {
    case "kept":
      return group.left + group.came ? `Kept: ${count(group.left, "photo")} left, ${count(group.came, "photo")} came.` : "Kept as it was.";
    case "split":
      return `Split into ${group.into.length}: ${shares.join(" and ")} of it.`;
    case "merged":
      return `Merged with ${others.join(", ")}.`;
    default:
      return "Vanished: no new group has most of its photos, or consists of them.";
  }
}

/** What a decision does to the group. */
export function describeDecision(group: GroupChange, decision: Decision): string {
  if (decision === "reject") return `Keeps its ${count(group.stayed + group.left, "photo")}.`;
  if (group.status === "vanished") return group.named ? "The group and its name end." : "The group ends.";
  if (group.status === "merged") return "Becomes one group with the others, if they are approved, too.";
  if (group.status === "split") return "The largest part keeps the name.";
  return "Takes the new grouping.";
}

/** Only decisions that differ from the suggested ones have to be sent. */
export function toSend(groups: readonly GroupChange[], chosen: ReadonlyMap<number, Decision>): { cluster_id: number; decision: Decision }[] {
  return groups.flatMap(({ cluster_id, suggested }) => {
    const decision = chosen.get(cluster_id) ?? suggested;
    return decision === suggested ? [] : [{ cluster_id, decision }];
  });
}
