/** Requests that start jobs. */
import { request } from "../api/client";
import type { components } from "../api/schema";
import type { Job } from "../api/types";
import { randomId } from "./ids";
import { trainConfig } from "./jobs";

type Create<T extends "ClusterCreate" | "SweepCreate" | "PredictCreate", K extends keyof components["schemas"][T]> =
  Partial<components["schemas"][T]> & Pick<components["schemas"][T], K>;
export type NewJob =
  | Create<"ClusterCreate", "kind" | "dataset_id" | "n_clusters">
  | Create<"SweepCreate", "kind" | "dataset_id" | "parameter">
  | Create<"PredictCreate", "kind" | "dataset_id" | "model">;

export async function startJob(body: NewJob): Promise<Job> {
  // A lost answer must not start it twice.
  const headers = { "Content-Type": "application/json", "Idempotency-Key": randomId() };
  const response = await request("/v1/jobs", { method: "POST", headers, body: JSON.stringify(body) });
  return (await response.json()) as Job;
}

const KEPT = ["objective", "n_heads", "n_neighbors", "beta", "seed"] as const;

/** The same clustering with other settings. */
export function sameTraining(job: Job, changes: Record<string, unknown>): NewJob {
  const train = trainConfig(job);
  const { model_name, backbone, precision, exclude_duplicates } = job.config;
  const kept = Object.fromEntries(KEPT.filter((name) => name in train).map((name) => [name, train[name]]));
  const learns = job.config.learn_from as { clustering_id: string } | undefined;
  return {
    kind: "cluster", dataset_id: job.dataset_id, n_clusters: Number(train.n_clusters), model_name, backbone, precision, exclude_duplicates,
    ...(learns ? { learn_from: learns.clustering_id } : {}), ...kept, ...changes,
  } as NewJob;
}

export const longerTraining = (job: Job, steps: number): NewJob => sameTraining(job, { steps: 2 * steps });

/** A clustering that continues an edited one and learns from what people said about it. */
export const learningTraining = (dataset_id: string, clustering_id: string): NewJob =>
  ({ kind: "cluster", dataset_id, n_clusters: "auto", learn_from: clustering_id });
