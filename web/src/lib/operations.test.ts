import { expect, it } from "vitest";
import type { Operation } from "../api/types";
import { author, describeOperation, groupsOf } from "./operations";

const operation = (kind: string, given: Record<string, unknown>, more: Partial<Operation> = {}): Operation => ({
  revision: 7, kind: kind as Operation["kind"], arguments: given, moved: 0, new_cluster_ids: [], undoes: null, undone_by: null, created_by: null, created_at: "2026-01-01T00:00:00Z", ...more,
});
const label = (id: number) => `group ${id}`;
const said = (entry: Operation, others: Operation[] = []) => describeOperation(entry, label, others);

it("says what each operation did", () => {
  expect(said(operation("rename", { cluster_id: 3, label: "cats" }))).toBe("Named group 3 “cats”");
  expect(said(operation("merge", { cluster_ids: [3, 4], into: 4, label: null }, { moved: 9 }))).toBe("Merged 2 groups into “group 4” (9 photos moved)");
  expect(said(operation("move", { images: 1, cluster_id: 4, new_cluster: null }))).toBe("Moved 1 photo to “group 4”");
  expect(said(operation("move", { images: 2, cluster_id: 9, new_cluster: "dogs" }))).toBe("Moved 2 photos to the new group “dogs”");
  expect(said(operation("split", { cluster_id: 3 }, { moved: 5, new_cluster_ids: [9] }))).toBe("Split “group 3”: 5 photos to 1 new group");
  expect(said(operation("exclude", { images: 3 }))).toBe("Excluded 3 photos");
});

it("says what was undone or done again", () => {
  const rename = operation("rename", { cluster_id: 3, label: "cats" }, { revision: 2 });
  expect(said(operation("undo", {}, { undoes: 2 }), [rename])).toBe("Undid revision 2: Named group 3 “cats”");
  expect(said(operation("redo", { revision: 2 }, { undoes: 3 }), [rename])).toBe("Did again revision 2: Named group 3 “cats”");
  expect(said(operation("undo", {}, { undoes: 2 }))).toBe("Undid revision 2");
});

it("links the groups, and names the author", () => {
  expect(groupsOf(operation("merge", { cluster_ids: [3, 4], into: 4 }))).toEqual([4]);
  expect(groupsOf(operation("split", { cluster_id: 3 }, { new_cluster_ids: [9, 10] }))).toEqual([3, 9, 10]);
  expect(author(operation("rename", {}, { created_by: "Anna" }))).toBe("Anna");
});
