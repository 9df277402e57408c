import { expect, it } from "vitest";
import { shifted } from "./shift";

it("skips the places of items that left", () => {
  const left = [1, 2, 5];
  expect([0, 1, 2, 3].map((index) => shifted(index, left))).toEqual([0, 3, 4, 6]);
});

it("changes nothing if none left", () => expect(shifted(7, [])).toBe(7));
