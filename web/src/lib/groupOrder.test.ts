import { expect, it } from "vitest";
import type { Cluster } from "../api/types";
import { arrange, viewOf } from "./groupOrder";

const group = (cluster_id: number, size: number, label: string, named: boolean, mean_probability: number): Cluster => ({
  cluster_id, size, label, named, mean_probability, examples: [],
});
const groups = [
  group(0, 10, "cluster 0", false, 0.9),
  group(1, 30, "tulip", true, 0.5),
  group(2, 20, "daisy", true, 0.7),
  group(3, 0, "empty", true, 0),
];
const ids = (query: Record<string, string>, near?: Map<number, number>) => arrange(groups, viewOf(query), near).map((c) => c.cluster_id);

it("sorts by size, confidence, name and what is left to name", () => {
  expect(ids({})).toEqual([1, 2, 0]);
  expect(ids({ sort: "confidence" })).toEqual([1, 2, 0]);
  expect(ids({ sort: "name" })).toEqual([2, 1, 0]);
  expect(ids({ sort: "unnamed" })).toEqual([0, 1, 2]);
});

it("puts a chosen group first and the most similar ones behind it", () => {
  expect(ids({ sort: "similar", near: "2" }, new Map([[0, 0.8], [1, 0.3]]))).toEqual([2, 0, 1]);
  expect(viewOf({ sort: "similar" }).sort).toBe("size");
});

it("filters by text, hides named and empty groups", () => {
  expect(ids({ q: "TUL" })).toEqual([1]);
  expect(ids({ hide: "named" })).toEqual([0]);
  expect(ids({ empty: "1" })).toContain(3);
});
