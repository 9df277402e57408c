/** Which points lie inside of a drawn outline. */
import type { GridIndex } from "./grid-index";
import type { Area, Point } from "./view";

/** Even-odd rule: a place that the outline runs around twice is outside. */
export function inside(x: number, y: number, outline: Point[]): boolean {
  let within = false;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i, i += 1) {
    const [a, b] = [outline[i]!, outline[j]!];
    if (a.y > y !== b.y > y && x < ((b.x - a.x) * (y - a.y)) / (b.y - a.y) + a.x) within = !within;
  }
  return within;
}

export function bounds(outline: Point[]): Area {
  const xs = outline.map((point) => point.x);
  const ys = outline.map((point) => point.y);
  return { left: Math.min(...xs), right: Math.max(...xs), bottom: Math.min(...ys), top: Math.max(...ys) };
}

/** Drops points of a drawn line that are nearer than `step` to the one before. */
export function thinned(outline: Point[], step: number): Point[] {
  const kept: Point[] = [];
  for (const point of outline) {
    const last = kept.at(-1);
    if (!last || Math.hypot(point.x - last.x, point.y - last.y) >= step) kept.push(point);
  }
  return kept;
}

/** The rows inside of an outline. Only cells that the outline crosses are tested point by point. */
export function rowsInside(index: GridIndex, outline: Point[]): number[] {
  if (outline.length < 3) return [];
  const rows: number[] = [];
  const area = bounds(outline);
  const crossed = crossedCells(index, outline);
  const [left, right] = [index.line(area.left), index.line(area.right)];
  for (let gridRow = index.line(area.bottom); gridRow <= index.line(area.top); gridRow += 1) {
    for (let column = left; column <= right; column += 1) {
      const [start, end] = index.cells(gridRow, column, column);
      if (start === end) continue;
      const exact = crossed.has(gridRow * index.side + column) || isBorder(index, gridRow, column);
      if (!exact && !inside(middle(index, column), middle(index, gridRow), outline)) continue;
      for (let at = start; at < end; at += 1) {
        const row = index.order[at]!;
        if (!exact || inside(index.x[row]!, index.y[row]!, outline)) rows.push(row);
      }
    }
  }
  return rows;
}

/** Points outside of -1 to 1 are kept in the cells of the border. */
function isBorder(index: GridIndex, gridRow: number, column: number): boolean {
  const last = index.side - 1;
  return gridRow === 0 || column === 0 || gridRow === last || column === last;
}

const middle = (index: GridIndex, line: number): number => (index.edge(line) + index.edge(line + 1)) / 2;

/** Cells that an edge of the outline may cross: those of each edge's bounding box, in short pieces. */
function crossedCells(index: GridIndex, outline: Point[]): Set<number> {
  const crossed = new Set<number>();
  const cell = 2 / index.side;
  for (let i = 0, j = outline.length - 1; i < outline.length; j = i, i += 1) {
    const [a, b] = [outline[j]!, outline[i]!];
    const pieces = Math.max(1, Math.ceil(Math.hypot(b.x - a.x, b.y - a.y) / cell));
    for (let piece = 0; piece < pieces; piece += 1) {
      const from = along(a, b, piece / pieces);
      const to = along(a, b, (piece + 1) / pieces);
      const [left, right] = [index.line(Math.min(from.x, to.x)), index.line(Math.max(from.x, to.x))];
      const [low, high] = [index.line(Math.min(from.y, to.y)), index.line(Math.max(from.y, to.y))];
      for (let row = low; row <= high; row += 1) {
        for (let column = left; column <= right; column += 1) crossed.add(row * index.side + column);
      }
    }
  }
  return crossed;
}

const along = (a: Point, b: Point, share: number): Point => ({ x: a.x + (b.x - a.x) * share, y: a.y + (b.y - a.y) * share });
