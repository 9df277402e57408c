import { expect, it } from "vitest";
import type { Cluster } from "../api/types";
import { groupOrder, lastVisited, rememberOrder, rememberVisited } from "./neighborGroups";

const groups = (sizes: number[]): Cluster[] =>
  sizes.map((size, cluster_id) => ({ cluster_id, size, label: "", named: false, mean_probability: null, examples: [] }));

it("follows the wall, whatever the edits do to the sizes", () => {
  expect(groupOrder("cl_1", groups([5, 9, 7]))).toEqual([1, 2, 0]);
  expect(groupOrder("cl_1", groups([50, 9, 7, 3]))).toEqual([1, 2, 0, 3]);
  rememberOrder("cl_1", [0, 1, 2]);
  expect(groupOrder("cl_1", groups([5, 9, 7]))).toEqual([0, 1, 2]);
});

it("leaves out empty groups, but not the one that is shown", () => {
  expect(groupOrder("cl_1", groups([5, 0, 7]))).toEqual([0, 2]);
  expect(groupOrder("cl_1", groups([5, 0, 7]), 1)).toEqual([0, 1, 2]);
});

it("knows the group that was opened last, by clustering", () => {
  rememberVisited("cl_1", 2);
  expect([lastVisited("cl_1"), lastVisited("cl_2")]).toEqual([2, -1]);
});
