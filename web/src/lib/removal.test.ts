import { expect, test } from "vitest";
import { afterRemoval, ascending } from "./removal";

test("places move up after a removal", () => {
  expect(afterRemoval([1, 5, 8], [0, 5, 6])).toEqual([0, 5]);
  expect(afterRemoval([2], [])).toEqual([2]);
});

test("numbers are sorted as numbers, without repeats", () => {
  expect(ascending([10, 9, 10, 2])).toEqual([2, 9, 10]);
});
