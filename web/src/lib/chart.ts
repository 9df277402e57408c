/** Scales and paths of small charts. */
export interface XY {
  x: number;
  y: number;
}

export interface Series {
  name: string;
  points: XY[];
  kind: "main" | "second" | "thin" | "reference";
}

/** Round numbers that span a range, about `wanted` of them. */
export function ticks(low: number, high: number, wanted = 4): number[] {
  if (!(high > low)) return [low];
  const rough = (high - low) / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, index) => Number(((first + index) * step).toPrecision(12)));
}

/** The range of all points, widened if it is a single value. */
export function extent(series: Series[], axis: "x" | "y"): [number, number] {
  let low = Infinity;
  let high = -Infinity;
  for (const { points } of series) {
    for (const point of points) {
      low = Math.min(low, point[axis]);
      high = Math.max(high, point[axis]);
    }
  }
  if (low > high) return [0, 1];
  return low === high ? [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1] : [low, high];
}

/** At most `most` points, the last one included: a screen shows no more. */
export function thinned(points: XY[], most: number): XY[] {
  if (points.length <= most) return points;
  const step = (points.length - 1) / (most - 1);
  return Array.from({ length: most }, (_, index) => points[Math.round(index * step)] as XY);
}

export function path(points: XY[], toX: (x: number) => number, toY: (y: number) => number): string {
  return points.map(({ x, y }, index) => `${index ? "L" : "M"}${toX(x).toFixed(1)} ${toY(y).toFixed(1)}`).join("");
}

/** The point nearest to an x, by bisection; the points rise in x. */
export function nearest(points: XY[], x: number): XY | undefined {
  let low = 0;
  let high = points.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((points[middle] as XY).x < x) low = middle;
    else high = middle;
  }
  const [a, b] = [points[low], points[high]];
  return a && b ? (Math.abs(a.x - x) <= Math.abs(b.x - x) ? a : b) : undefined;
}

export function short(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000) return value.toLocaleString(undefined, { maximumFractionDigits: 0 });
  return Number(value.toPrecision(3)).toString().replace("-", "−");
}
