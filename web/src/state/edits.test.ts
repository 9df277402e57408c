import { expect, it } from "vitest";
import { randomId } from "../lib/ids";
import { loadEdits, saveEdits, type Edit } from "./edits";

class FakeStorage {
  private values = new Map<string, string>();
  full = false;
  get length(): number { return this.values.size; }
  key(index: number): string | null { return [...this.values.keys()][index] ?? null; }
  clear(): void { this.values.clear(); }
  getItem(name: string): string | null { return this.values.get(name) ?? null; }
  removeItem(name: string): void { this.values.delete(name); }
  setItem(name: string, value: string): void {
    if (this.full) throw new Error("QuotaExceededError");
    this.values.set(name, value);
  }
}
const edit: Edit = { key: "k1", seen: 3, operation: { kind: "rename", cluster_id: 1, label: "cats" }, said: "Named “cats”" };

it("keeps edits over a reload, by clustering", () => {
  const storage = new FakeStorage();
  saveEdits("cl_1", [edit], storage);
  expect(loadEdits("cl_1", storage)).toEqual([edit]);
  expect(loadEdits("cl_2", storage)).toEqual([]);
  saveEdits("cl_1", [], storage);
  expect(storage.length).toBe(0);
});

it("survives a broken entry and a full storage", () => {
  const storage = new FakeStorage();
  storage.setItem("temi-edits-cl_1", "{");
  expect(loadEdits("cl_1", storage)).toEqual([]);
  storage.full = true;
  expect(() => saveEdits("cl_1", [edit], storage)).not.toThrow();
});

it("makes different keys", () => expect(randomId()).not.toBe(randomId()));
