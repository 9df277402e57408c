/** The result of a sweep: the figures of each value, and which one is suggested. */
import type { Job, JobCurvePoint } from "../api/types";
import type { Series } from "./chart";

export interface SweepPoint {
  value: number;
  groups: number;
  confidence: number; // mean probability of the chosen group
  doubt: number; // entropy per photo as a share of the highest possible
  even: number; // as even as so many groups of equal size
  stability: number | null; // agreement of groupings of random parts; only for numbers of groups
  accuracy: number | null;
  clusteringId: string | null; // kept by the sweep
}

export interface Sweep {
  parameter: "beta" | "n_clusters";
  points: SweepPoint[];
  suggested: number | null;
  plausible: number[]; // coarser or finer numbers of groups
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
    plausible: Array.isArray(job.result?.plausible) ? (job.result.plausible as number[]) : [],
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
    stability: typeof figures.stability === "number" ? figures.stability : null,
    accuracy: typeof figures.accuracy === "number" ? figures.accuracy : null,
    clusteringId: typeof figures.clustering_id === "string" ? figures.clustering_id : null,
  };
}

export function sweepSeries(points: SweepPoint[]): Series[] {
  const stable = points.flatMap(({ value, stability }) => (stability === null ? [] : [{ x: value, y: stability }]));
  if (stable.length) return [{ name: "stability", kind: "main", points: stable }];
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
    ? "No number is suggested: there are too few photos, or they form no groups. Choose the number whose groups you can name."
    : `Suggested: ${suggested} groups, which are stable and separate similar photos the least. The plausible numbers are coarser or finer groups.`;
}
