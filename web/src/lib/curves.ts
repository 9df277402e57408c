/** Series of the training charts from the points that a job records. */
import type { JobCurvePoint } from "../api/types";
import type { Series, XY } from "./chart";

const isNumber = (value: unknown): value is number => typeof value === "number" && Number.isFinite(value);

function values(points: JobCurvePoint[], name: string): XY[] {
  return points.flatMap(({ step, values: found }) => (isNumber(found[name]) ? [{ x: step, y: found[name] }] : []));
}

/** The losses of all heads as thin lines, the best one on top. */
export function headLosses(points: JobCurvePoint[]): Series[] {
  const heads = points.reduce((most, { values: found }) => Math.max(most, Array.isArray(found.losses) ? found.losses.length : 0), 0);
  const thin = Array.from({ length: heads }, (_, head): Series => {
    const line = points.flatMap(({ step, values: found }) => {
      const loss: unknown = Array.isArray(found.losses) ? found.losses[head] : null;
      return isNumber(loss) ? [{ x: step, y: loss }] : [];
    });
    return { name: `head ${head}`, kind: "thin", points: line };
  });
  const best: Series = { name: heads > 1 ? `best of ${heads} heads` : "loss", kind: "main", points: values(points, "loss") };
  return best.points.length ? [...thin, best] : [];
}

/** Measured every few seconds only, so with fewer points than the loss. */
export function entropies(points: JobCurvePoint[], groups: number): Series[] {
  const sizes = values(points, "occupancy_entropy");
  if (!sizes.length) return [];
  const lines: Series[] = [
    { name: "group sizes", kind: "main", points: sizes },
    { name: "per photo", kind: "second", points: values(points, "conditional_entropy") },
  ];
  return groups ? [...lines, level("highest possible", Math.log(groups), sizes)] : lines;
}

export function usedGroups(points: JobCurvePoint[], groups: number): Series[] {
  const used = values(points, "used_clusters");
  if (!used.length) return [];
  const lines: Series[] = [{ name: "in use", kind: "main", points: used }];
  return groups ? [...lines, level(`asked for: ${groups}`, groups, used)] : lines;
}

function level(name: string, y: number, along: XY[]): Series {
  return { name, kind: "reference", points: [{ x: along[0]?.x ?? 0, y }, { x: along.at(-1)?.x ?? 1, y }] };
}
