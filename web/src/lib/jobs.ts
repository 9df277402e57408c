/** Jobs in words. */
import type { Job } from "../api/types";
import { count, duration, integer } from "./format";

const KINDS: Record<Job["kind"], string> = {
  ingest: "Read photos",
  cluster: "Make groups",
  sweep: "Compare settings",
  finetune: "Fine-tune a model",
  predict: "Add photos to groups",
  map: "Draw the map",
  export: "Export",
  gather: "Gather new photos",
};
const STAGES: Record<string, string> = {
  ingest: "Read the photos",
  embed: "Compute features",
  count: "Find the number of groups",
  gather: "Gather similar photos",
  mine: "Find neighbors",
  train: "Train",
  finetune: "Fine-tune",
  sweep: "Train with each value",
  evaluate: "Assign the photos",
  register: "Save the result",
  project: "Arrange in two dimensions",
  export: "Write the file",
};
const UNITS: Record<string, [string, string]> = { count: ["number", "numbers"], train: ["step", "steps"], finetune: ["step", "steps"], sweep: ["step", "steps"], project: ["step", "steps"] };

export function kindName(job: Job): string {
  const groups = trainConfig(job).n_clusters;
  return job.kind === "cluster" && typeof groups === "number" ? `Make ${count(groups, "group")}` : KINDS[job.kind];
}

export const stageName = (stage: string): string => STAGES[stage] ?? stage;

/** "412 of 1,500 photos · 80/s · 14 s left" */
export function progressText(job: Job): string {
  const { stage, completed, total, rate, eta_seconds } = job.progress;
  if (!stage) return "";
  const [one, many] = UNITS[stage] ?? ["photo", "photos"];
  const amount = total ? `${integer(completed)} of ${count(total, one, many)}` : count(completed, one, many);
  const speed = rate ? `${rate >= 10 ? integer(Math.round(rate)) : rate.toFixed(1)}/s` : "";
  const left = eta_seconds ? `${duration(eta_seconds)} left` : "";
  return [amount, speed, left].filter(Boolean).join(" · ");
}

export function trainConfig(job: Job): Record<string, unknown> {
  const { train } = job.config;
  return typeof train === "object" && train !== null && !Array.isArray(train) ? (train as Record<string, unknown>) : {};
}

/** The clustering that came out of a job. */
export function resultClustering(job: Job): string | null {
  const id = job.result?.clustering_id;
  return typeof id === "string" ? id : null;
}

export function statusText(job: Job): string {
  return { queued: "Waiting", running: "Running", cancelling: "Being cancelled", cancelled: "Cancelled", succeeded: "Done", failed: "Failed" }[job.status];
}
