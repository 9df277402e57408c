import { expect, test } from "vitest";
import type { Job } from "../api/types";
import { advice, readSweep } from "./sweep";

const figures = { conditional_entropy: Math.log(4) / 10, mean_probability: 0.9, size_kl: 0, loss: 1, accuracy: null };
const config = { parameter: "n_clusters", train: [{ n_clusters: 4 }] };

test("a finished sweep has its points and the suggested one", () => {
  const result = { points: [{ ...figures, n_clusters: 4, clustering_id: "cl_1" }], suggested: 4, plausible: [4] };
  const sweep = readSweep({ config, result } as unknown as Job, []);
  expect(sweep.points[0]).toMatchObject({ value: 4, groups: 4, confidence: 0.9, stability: null, clusteringId: "cl_1" });
  expect(sweep.plausible).toEqual([4]);
  expect(sweep.points[0]?.doubt).toBeCloseTo(0.1);
  expect(sweep.points[0]?.even).toBeCloseTo(4);
  expect(advice(sweep)).toContain("4 groups");
});

test("a running sweep shows what its curve has", () => {
  const running = { config: { parameter: "beta", train: [{ n_clusters: 4 }] }, result: null } as unknown as Job;
  const sweep = readSweep(running, [{ step: 1, values: { ...figures, beta: 0.6 } }]);
  expect(sweep).toMatchObject({ finished: false, suggested: null });
  expect(sweep.points[0]).toMatchObject({ value: 0.6, groups: 4, clusteringId: null });
});
