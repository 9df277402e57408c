import { expect, it } from "vitest";
import type { Cluster, ClusterGroup } from "../api/types";
import { arrange, viewOf } from "./groupOrder";
import { levelOf, lineOf, linesOf, sectionsOf, stepLines } from "./sections";

const group = (cluster_id: number, size: number, label = `cluster ${cluster_id}`, named = false): Cluster => ({
  cluster_id, size, label, named, mean_probability: 0.5, examples: [],
});
const clusters = [group(0, 40), group(1, 30, "tulip", true), group(2, 35), group(3, 5), group(4, 10, "daisy", true), group(5, 0)];
const byId = new Map(clusters.map((cluster) => [cluster.cluster_id, cluster]));
const joined: ClusterGroup[] = [
  { cluster_ids: [1, 2], size: 65, label: "tulip" },
  { cluster_ids: [0], size: 40, label: "cluster 0" },
  { cluster_ids: [4, 3], size: 15, label: "daisy" },
];
function shown(query: Record<string, string>): [string | null, number[]][] {
  const view = viewOf(query);
  const found = sectionsOf(arrange(clusters, view), byId, joined, view.sort === "size");
  return found.map((section) => [section.label, section.clusters.map((cluster) => cluster.cluster_id)]);
}

it("shows the largest section first, each with its groups in order", () => {
  expect(shown({})).toEqual([["tulip", [2, 1]], ["cluster 0", [0]], ["daisy", [4, 3]]]);
});

it("follows the order of the wall", () => {
  expect(shown({ sort: "name" })).toEqual([["daisy", [4, 3]], ["tulip", [1, 2]], ["cluster 0", [0]]]);
});

it("leaves out sections whose groups are all filtered out", () => {
  expect(shown({ q: "tulip" })).toEqual([["tulip", [1]]]);
  expect(shown({ hide: "named" })).toEqual([["tulip", [2]], ["cluster 0", [0]], ["daisy", [3]]]);
});

it("puts groups that the view does not know last", () => {
  expect(shown({ empty: "1" }).at(-1)).toEqual(["Other groups", [5]]);
});

it("is named anew when a group was renamed or merged meanwhile", () => {
  const left = new Map([[0, group(0, 40, "rose", true)], [2, group(2, 65, "meadow", true)]]);
  const found = sectionsOf([...left.values()], left, joined, true);
  expect(found.map((section) => section.label)).toEqual(["meadow", "rose"]);
});

it("takes a number that makes the view coarser", () => {
  expect([levelOf(5, 12), levelOf(2, 4)]).toEqual([5, 2]);
  expect([levelOf(null, 12), levelOf(1, 12), levelOf(12, 12), levelOf(2, 3), levelOf(5, 1001)]).toEqual([null, null, null, null, null]);
});

it("has a line for each heading and each row of cards", () => {
  const sections = sectionsOf(arrange(clusters, viewOf({})), byId, joined, true);
  const wide = linesOf(sections, 2);
  expect(wide.map((line) => [line.heading?.label ?? null, line.start, line.end])).toEqual([
    ["tulip", 0, 0], [null, 0, 2], ["cluster 0", 2, 2], [null, 2, 3], ["daisy", 3, 3], [null, 3, 5],
  ]);
  expect([0, 1, 2, 4].map((index) => lineOf(wide, index))).toEqual([1, 1, 3, 5]);
  expect(linesOf([{ label: null, clusters, joined: false }], 4).map((line) => line.end)).toEqual([4, 6]);
});

it("moves between the rows of sections, which may be short", () => {
  const lines = linesOf(sectionsOf(arrange(clusters, viewOf({})), byId, joined, true), 2);
  expect(stepLines(lines, 1, 1)).toBe(2); // the second section has one card
  expect(stepLines(lines, 2, 1)).toBe(3);
  expect(stepLines(lines, 4, -2)).toBe(1);
  expect([stepLines(lines, 1, -1), stepLines(lines, 4, 3), stepLines([], 0, 1)]).toEqual([1, 4, 0]);
});
