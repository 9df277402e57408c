import { expect, test } from "vitest";
import { learnedTexts, readLearning } from "./learning";

const NOTHING = { clustering_id: "cl_1", revision: 4, confirmed: 0, moved: 0, excluded: 0, refused: 0, merges: 0, splits: 0 };

test("only a clustering that has learned says what", () => {
  expect(readLearning({ learning: NOTHING })).toBe(NOTHING);
  expect(readLearning({})).toBeNull();
  expect(readLearning(undefined)).toBeNull();
});

test("only what was said is named", () => {
  expect(learnedTexts({ ...NOTHING, confirmed: 12, excluded: 1, merges: 2 })).toEqual(["12 photos confirmed", "1 photo excluded", "2 merges"]);
  expect(learnedTexts({ ...NOTHING, moved: 1, refused: 2, splits: 1 })).toEqual(["1 photo moved to another group", "2 photos in the wrong group", "1 split"]);
  expect(learnedTexts(NOTHING)).toEqual([]);
});
