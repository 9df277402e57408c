import { expect, test } from "vitest";
import type { JobCurvePoint } from "../api/types";
import { entropies, headLosses, usedGroups } from "./curves";

const points: JobCurvePoint[] = [
  { step: 1, values: { loss: -0.2, losses: [-0.2, -0.1], occupancy_entropy: 2, conditional_entropy: 1.9, used_clusters: 8 } },
  { step: 2, values: { loss: -0.3, losses: [-0.2, -0.3] } },
];

test("each head is a line, and the best one is on top", () => {
  const lines = headLosses(points);
  expect(lines.map(({ name }) => name)).toEqual(["head 0", "head 1", "best of 2 heads"]);
  expect(lines[2]?.points).toEqual([{ x: 1, y: -0.2 }, { x: 2, y: -0.3 }]);
});

test("a fine-tuning has one loss only", () => {
  expect(headLosses([{ step: 1, values: { loss: 3, best_head: 0 } }]).map(({ name }) => name)).toEqual(["loss"]);
  expect(headLosses([])).toEqual([]);
});

test("entropies and use have their highest value beside them", () => {
  expect(entropies(points, 8).map(({ name, points: line }) => [name, line.length])).toEqual([["group sizes", 1], ["per photo", 1], ["highest possible", 2]]);
  expect(usedGroups(points, 8)[0]?.points).toEqual([{ x: 1, y: 8 }]);
  expect(entropies([], 8)).toEqual([]);
});
