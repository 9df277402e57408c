import { expect, test } from "vitest";
import { isElsewhere, loadPlans, removePlan, savePlan, type Plan } from "./plans";

class Memory {
  private values = new Map<string, string>();
  getItem = (key: string): string | null => this.values.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.values.set(key, value);
  removeItem = (key: string): void => void this.values.delete(key);
}

const plan = (id: string, changes: Partial<Plan> = {}): Plan => ({
  id, tab: "t1", name: "n", datasetId: null, adds: false, groups: 5, labels: "none", fingerprint: "f", files: 1, bytes: 1,
  sent: 0, stage: "sending", uploadId: null, uploadUrl: null, jobId: null, seenAt: 1000, ...changes,
});

test("plans are kept, replaced and removed", () => {
  const storage = new Memory() as unknown as Storage;
  savePlan(plan("a"), storage);
  savePlan(plan("b"), storage);
  savePlan(plan("a", { stage: "sent" }), storage);
  expect(loadPlans(storage).map((one) => [one.id, one.stage])).toEqual([["b", "sending"], ["a", "sent"]]);
  removePlan("a", storage);
  removePlan("b", storage);
  expect(storage.getItem("temi-plans")).toBeNull();
});

test("damaged storage counts as empty", () => {
  const storage = new Memory() as unknown as Storage;
  storage.setItem("temi-plans", "{");
  expect(loadPlans(storage)).toEqual([]);
});

test("an upload of another tab that is alive is left to it", () => {
  expect(isElsewhere(plan("a"), "t2", 5000)).toBe(true);
  expect(isElsewhere(plan("a"), "t1", 5000)).toBe(false); // this tab, after a reload
  expect(isElsewhere(plan("a"), "t2", 60_000)).toBe(false);
  expect(isElsewhere(plan("a", { stage: "sent" }), "t2", 5000)).toBe(false);
});
