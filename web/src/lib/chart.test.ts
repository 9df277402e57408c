import { expect, test } from "vitest";
import { extent, nearest, path, thinned, ticks, type Series } from "./chart";

const series = (points: [number, number][]): Series => ({ name: "a", kind: "main", points: points.map(([x, y]) => ({ x, y })) });

test("ticks are round and inside the range", () => {
  expect(ticks(0, 100)).toEqual([0, 50, 100]);
  expect(ticks(-0.97, -0.22)).toEqual([-0.8, -0.6, -0.4]);
  expect(ticks(0, 1, 5)).toEqual([0, 0.2, 0.4, 0.6, 0.8, 1]);
  expect(ticks(3, 3)).toEqual([3]);
});

test("the extent of one value is widened; without points it is 0 to 1", () => {
  expect(extent([series([[1, 2], [3, 8]])], "y")).toEqual([2, 8]);
  expect(extent([series([[1, 10]])], "y")).toEqual([9, 11]);
  expect(extent([], "x")).toEqual([0, 1]);
});

test("long curves are thinned and keep both ends", () => {
  const points = Array.from({ length: 1001 }, (_, x) => ({ x, y: x }));
  const few = thinned(points, 11);
  expect(few.map((point) => point.x)).toEqual([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000]);
});

test("paths and nearest points", () => {
  const points = [{ x: 0, y: 1 }, { x: 10, y: 2 }, { x: 20, y: 3 }];
  expect(path(points.slice(0, 2), (x) => x, (y) => y)).toBe("M0.0 1.0L10.0 2.0");
  expect(nearest(points, 14)?.x).toBe(10);
  expect(nearest(points, 99)?.x).toBe(20);
  expect(nearest([], 1)).toBeUndefined();
});
