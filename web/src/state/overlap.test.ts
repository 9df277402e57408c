import { describe, expect, it } from "vitest";
import type { Operation, OperationCreate } from "../api/types";
import type { Edit, Source } from "./edits";
import { independent } from "./overlap";

const edit = (operation: OperationCreate, source?: Source): Edit => ({ key: "k", seen: 1, operation, said: "", source });
const other = (kind: Operation["kind"], given: Record<string, unknown>, created: number[] = []): Operation => ({
  revision: 2, kind, arguments: given, moved: 0, new_cluster_ids: created, undoes: null, undone_by: null, created_by: "Anna", created_at: "2026-01-01T00:00:00Z",
});
const rename = edit({ kind: "rename", cluster_id: 3, label: "cats" });

describe("independent", () => {
  it("lets two people name different groups", () => {
    expect(independent(rename, [other("rename", { cluster_id: 4 })])).toBe(true);
    expect(independent(rename, [other("move", { images: 2, cluster_id: 3 })])).toBe(true);
  });
  it("asks if both changed the same group", () => {
    expect(independent(rename, [other("rename", { cluster_id: 4 }), other("rename", { cluster_id: 3 })])).toBe(false);
    expect(independent(rename, [other("merge", { cluster_ids: [3, 4], into: 4 })])).toBe(false);
    expect(independent(rename, [other("split", { cluster_id: 3 }, [9])])).toBe(false);
  });
  it("asks before photos are moved after another move", () => {
    const move = edit({ kind: "move", image_ids: ["img_1"], cluster_id: 5 }, { cluster_id: 3, count: 1 });
    expect(independent(move, [other("move", { images: 2, cluster_id: 7 })])).toBe(false);
    expect(independent(move, [other("rename", { cluster_id: 7 })])).toBe(true);
    expect(independent(move, [other("rename", { cluster_id: 5 })])).toBe(false);
  });
  it("asks before an undo, which would take back the other change", () => {
    expect(independent(edit({ kind: "undo" }), [other("rename", { cluster_id: 4 })])).toBe(false);
    expect(independent(rename, [other("undo", {})])).toBe(false);
  });
});
