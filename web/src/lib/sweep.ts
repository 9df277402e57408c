/** The result of a sweep: the figures of each value, and which one is suggested. */
import type { Job, JobCurvePoint } from "../api/types";
import type { Series } from "./chart";

export interface SweepPoint {
  value: number;
  groups: number;
  confidence: number; // mean probability of the chosen group
  doubt: number; // entropy per photo as a share of the highest possible
  even: number; // as even as so many groups of equal size
  accuracy: number | null;
  clusteringId: string | null; // kept by the sweep
}

export interface Sweep {
  parameter: "beta" | "n_clusters";
  points: SweepPoint[];
  suggested: number | null;
  finished: boolean;
}

type Figures = Record<string, unknown>;

/** From the result, or while the sweep runs from the points that its curve has so far. */
export function readSweep(job: Job, curve: JobCurvePoint[]): Sweep {
  const parameter = job.config.parameter === "n_clusters" ? "n_clusters" : "beta";
  const result = job.result?.points;
  const figures = Array.isArray(result) ? (result as Figures[]) : curve.map((point) => point.values);
  const train: unknown = Array.isArray(job.config.train) ? job.config.train[0] : undefined;
  const groups = Number((train as Figures | undefined)?.n_clusters) || 2;
  const suggested = job.result?.suggested;
  return {
    parameter,
    points: figures.map((one) => toPoint(one, parameter, groups)),
    suggested: typeof suggested === "number" ? suggested : null,
    finished: Array.isArray(result),
  };
}

function toPoint(figures: Figures, parameter: string, groupsOfSweep: number): SweepPoint {
  const groups = Number(figures.n_clusters) || groupsOfSweep;
  const highest = Math.log(groups);
  return {
    value: Number(figures[parameter]),
    groups,
    confidence: Number(figures.mean_probability),
    doubt: Number(figures.conditional_entropy) / highest,
    even: Math.exp(highest - Number(figures.size_kl)),
    accuracy: typeof figures.accuracy === "number" ? figures.accuracy : null,
    clusteringId: typeof figures.clustering_id === "string" ? figures.clustering_id : null,
  };
}

export function sweepSeries(points: SweepPoint[]): Series[] {
  return [
    { name: "confidence", kind: "main", points: points.map(({ value, confidence }) => ({ x: value, y: confidence })) },
    { name: "doubt", kind: "second", points: points.map(({ value, doubt }) => ({ x: value, y: doubt })) },
  ];
}

export function advice(sweep: Sweep): string {
  const { parameter, suggested } = sweep;
  if (parameter === "beta") {
    return suggested === null
      ? "No beta is suggested: the doubt is high for each of them."
      : `Suggested: beta ${suggested}, the lowest from which on the doubt stays low.`;
  }
  return suggested === null
    ? "No number is suggested: the doubt is above 10 % for each of them. Try smaller numbers, or choose one whose groups you can name."
    : `Suggested: ${suggested} groups, the largest number with a doubt of at most 10 %. With more, several groups would show the same.`;
}
