import { expect, test, vi } from "vitest";
import type { Job } from "../api/types";

vi.mock("../api/client", () => ({ request: vi.fn() }));
const { longerTraining } = await import("./newjob");

test("a longer training repeats the settings with twice the steps", () => {
  const config = {
    model_name: "m", backbone: "b", precision: "float32", exclude_duplicates: "none",
    train: { n_clusters: 8, objective: "temi", n_heads: 16, n_neighbors: 46, beta: 0.6, steps: 600, learning_rate: 0.004, seed: 0 },
  };
  const body = longerTraining({ dataset_id: "ds_1", config } as unknown as Job, 600);
  expect(body).toEqual({
    kind: "cluster", dataset_id: "ds_1", n_clusters: 8, model_name: "m", backbone: "b", precision: "float32", exclude_duplicates: "none",
    objective: "temi", n_heads: 16, n_neighbors: 46, beta: 0.6, seed: 0, steps: 1200,
  });
});
