/** Whether an edit means the same after another person's. Two people who name different groups
 * must not stop each other; an edit of the same group asks. */
import type { Operation } from "../api/types";
import type { Edit } from "./edits";

const ids = (value: unknown): number[] => (Array.isArray(value) ? value.filter((id) => typeof id === "number") : typeof value === "number" ? [value] : []);

/** True if none of the operations concerns the groups of the edit, for certain. */
export function independent(edit: Edit, others: Operation[]): boolean {
  const mine = groupsOfEdit(edit);
  if (!mine || !others.length) return false;
  return others.every((other) => {
    const theirs = groupsOfOperation(other, edit.operation.kind === "rename");
    return theirs !== null && !theirs.some((id) => mine.includes(id));
  });
}

/** The groups that an edit concerns; null if that is not known, or is "the newest change". */
function groupsOfEdit(edit: Edit): number[] | null {
  const operation = edit.operation;
  switch (operation.kind) {
    case "rename":
    case "split":
      return [operation.cluster_id];
    case "merge":
      return operation.cluster_ids;
    case "move":
    case "exclude": {
      if (!edit.source) return null;
      return [edit.source.cluster_id, ...(operation.kind === "move" ? ids(operation.cluster_id) : [])];
    }
    default:
      return null;
  }
}

/** A move tells where photos went and not where they came from: only a name is safe from it. */
function groupsOfOperation(operation: Operation, forName: boolean): number[] | null {
  const given = operation.arguments;
  switch (operation.kind) {
    case "rename":
    case "split":
      return [...ids(given.cluster_id), ...operation.new_cluster_ids];
    case "merge":
      return ids(given.cluster_ids);
    case "move":
    case "exclude":
    case "extend":
      return forName ? [] : null;
    default:
      return null;
  }
}
