/** A uniform grid over the points: picking, regions, and which points a view needs.
 *
 * `order` lists the rows cell by cell. The cells of a grid row are neighbors in it, so the points
 * of a rectangle are one range per grid row, and every k-th point of `order` is an even sample.
 */
import type { Area } from "./view";

export type Range = [start: number, end: number];

const POINTS_PER_CELL = 4;
const MAX_SIDE = 1024;

export class GridIndex {
  readonly side: number;
  readonly order: Uint32Array;
  private readonly starts: Uint32Array;

  constructor(
    readonly x: Float32Array,
    readonly y: Float32Array,
  ) {
    const count = x.length;
    this.side = Math.max(1, Math.min(MAX_SIDE, Math.ceil(Math.sqrt(count / POINTS_PER_CELL))));
    const cells = new Uint32Array(count);
    this.starts = new Uint32Array(this.side * this.side + 1);
    for (let row = 0; row < count; row += 1) {
      const cell = this.line(y[row]!) * this.side + this.line(x[row]!);
      cells[row] = cell;
      this.starts[cell + 1]! += 1;
    }
    for (let cell = 0; cell < this.side * this.side; cell += 1) this.starts[cell + 1]! += this.starts[cell]!;
    const next = this.starts.slice(0, -1);
    this.order = new Uint32Array(count);
    for (let row = 0; row < count; row += 1) this.order[next[cells[row]!]!++] = row;
  }

  /** The column of an x, or the grid row of a y. */
  line(value: number): number {
    const line = Math.floor(((value + 1) / 2) * this.side);
    return line < 0 ? 0 : line >= this.side ? this.side - 1 : line;
  }

  /** The lower edge of a column or grid row. */
  edge(line: number): number {
    return (line / this.side) * 2 - 1;
  }

  /** Positions in `order` of the points of some cells of a grid row. */
  cells(gridRow: number, firstColumn: number, lastColumn: number): Range {
    const base = gridRow * this.side;
    return [this.starts[base + firstColumn]!, this.starts[base + lastColumn + 1]!];
  }

  /** Ranges of `order` that hold all points of an area, and some beside it. Ranges with small gaps
   * are joined: a few points too many are cheaper than many draw calls. */
  ranges(area: Area, gap = 256): Range[] {
    const found: Range[] = [];
    const [left, right] = [this.line(area.left), this.line(area.right)];
    for (let row = this.line(area.bottom); row <= this.line(area.top); row += 1) {
      const [start, end] = this.cells(row, left, right);
      if (start === end) continue;
      const last = found.at(-1);
      if (last && start - last[1] <= gap) last[1] = end;
      else found.push([start, end]);
    }
    return found;
  }

  /** Calls `visit` with the rows inside of an area. */
  within(area: Area, visit: (row: number) => void): void {
    for (const [start, end] of this.ranges(area, 0)) {
      for (let at = start; at < end; at += 1) {
        const row = this.order[at]!;
        const [x, y] = [this.x[row]!, this.y[row]!];
        if (x >= area.left && x <= area.right && y >= area.bottom && y <= area.top) visit(row);
      }
    }
  }

  /** The row nearest to a place, within a radius; -1 if there is none. */
  nearest(x: number, y: number, radius: number, accept: (row: number) => boolean = () => true): number {
    let best = -1;
    let distance = radius * radius;
    this.within({ left: x - radius, right: x + radius, bottom: y - radius, top: y + radius }, (row) => {
      const squared = (this.x[row]! - x) ** 2 + (this.y[row]! - y) ** 2;
      if (squared <= distance && accept(row)) {
        best = row;
        distance = squared;
      }
    });
    return best;
  }
}
