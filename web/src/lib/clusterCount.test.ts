import { expect, test } from "vitest";
import { countSeries, readCount } from "./clusterCount";

const points = [4, 8, 16, 100].map((n_clusters) => ({ n_clusters, stability: 0.8, modularity: 0.5, score: 0.2 }));

test("only a clustering whose number was found has a count", () => {
  expect(readCount(undefined)).toBeNull();
  expect(readCount({ training: {} })).toBeNull();
  expect(readCount({ count: { points, suggested: [8] } })?.suggested).toEqual([8]);
});

test("the chart ends where nothing is suggested", () => {
  const [score] = countSeries({ points, suggested: [8, 4] });
  expect(score?.points.map(({ x }) => x)).toEqual([4, 8, 16]);
});
