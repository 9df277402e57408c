/** Operations of the history in words. */
import type { Operation } from "../api/types";
import { count, integer } from "./format";

type Label = (clusterId: number) => string;

const numbers = (value: unknown): number[] => (Array.isArray(value) ? value.filter((entry) => typeof entry === "number") : []);
const number = (value: unknown): number | null => (typeof value === "number" ? value : null);
const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** What an operation did: "Moved 3 photos to “Cats”". */
export function describeOperation(operation: Operation, label: Label, others: readonly Operation[] = []): string {
  const given = operation.arguments;
  const group = number(given.cluster_id);
  const name = (id: number | null): string => (id === null ? "a group" : `“${label(id)}”`);
  const photos = count(number(given.images) ?? operation.moved, "photo");
  switch (operation.kind as string) {
    case "rename":
      return `Named group ${group ?? ""} “${text(given.label)}”`;
    case "merge": {
      const into = number(given.into);
      const ids = numbers(given.cluster_ids);
      const kept = text(given.label) ? `“${text(given.label)}”` : name(into);
      return `Merged ${count(ids.length, "group")} into ${kept} (${count(operation.moved, "photo")} moved)`;
    }
    case "split":
      return `Split ${name(group)}: ${count(operation.moved, "photo")} to ${count(operation.new_cluster_ids.length, "new group")}`;
    case "move":
      return text(given.new_cluster) ? `Moved ${photos} to the new group “${text(given.new_cluster)}”` : `Moved ${photos} to ${name(group)}`;
    case "exclude":
      return `Excluded ${photos}`;
    case "undo":
      return reverted("Undid", number(operation.undoes), label, others);
    case "redo":
      return reverted("Did again", number(given.revision), label, others);
    case "extend":
      return `Added ${count(number(given.images) ?? operation.moved, "photo")} that the model predicted`;
    case "adopt":
      return `Took over ${count(Array.isArray(given.groups) ? given.groups.length : 0, "group")} of an earlier clustering (${count(operation.moved, "photo")} moved)`;
    default:
      return operation.kind;
  }
}

function reverted(verb: string, revision: number | null, label: Label, others: readonly Operation[]): string {
  const before = others.find((other) => other.revision === revision);
  return `${verb} revision ${integer(revision ?? 0)}${before ? `: ${describeOperation(before, label)}` : ""}`;
}

/** The groups that an operation is about, for links. */
export function groupsOf(operation: Operation): number[] {
  const given = operation.arguments;
  const ids = [number(given.into) ?? number(given.cluster_id), ...operation.new_cluster_ids];
  return [...new Set(ids.filter((id) => id !== null))];
}

export const author = (operation: Operation): string =>
  operation.created_by ?? ((operation.kind as string) === "extend" ? "prediction job" : "without a key");
