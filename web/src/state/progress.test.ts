import { expect, it } from "vitest";
import type { Cluster } from "../api/types";
import { progressOf, progressText } from "./progress";

const group = (size: number, named: boolean): Cluster => ({ cluster_id: 0, label: "", named, size, mean_probability: null, examples: [] });

it("counts named groups and their photos, without empty groups", () => {
  const progress = progressOf([group(91, true), group(9, false), group(0, true)]);
  expect(progress).toEqual({ named: 1, groups: 2, photos: 0.91 });
  expect(progressText(progress)).toBe("1 of 2 named, 91 % of photos");
});

it("shows 100 % only at the end", () => {
  expect(progressText(progressOf([group(9999, true), group(1, false)]))).toContain("99 %");
  expect(progressText(progressOf([group(5, true)]))).toContain("100 %");
  expect(progressText(progressOf([]))).toBe("0 of 0 named, 0 % of photos");
});
