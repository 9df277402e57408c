/** Geometry of a grid of equal cells. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Shape {
  columns: number;
  cell: number; // width of a cell
  gap: number;
  rowHeight: number; // with the gap
  count: number;
}

export function columnsFor(width: number, size: number, gap: number): number {
  return Math.max(1, Math.floor((width + gap) / (size + gap)));
}

/** Indexes of the cells that a rectangle touches. */
export function cellsIn(box: Box, shape: Shape): number[] {
  const pitch = shape.cell + shape.gap;
  const firstRow = Math.max(0, Math.floor(box.top / shape.rowHeight));
  const lastRow = Math.floor(box.bottom / shape.rowHeight);
  const firstColumn = Math.max(0, Math.floor((box.left + shape.gap) / pitch));
  const lastColumn = Math.min(shape.columns - 1, Math.floor(box.right / pitch));
  const found: number[] = [];
  for (let row = firstRow; row <= lastRow; row += 1) {
    for (let column = firstColumn; column <= lastColumn; column += 1) {
      const index = row * shape.columns + column;
      if (index < shape.count) found.push(index);
    }
  }
  return found;
}

export function indexAt(point: { x: number; y: number }, shape: Shape): number {
  const row = Math.max(0, Math.floor(point.y / shape.rowHeight));
  const column = Math.max(0, Math.min(shape.columns - 1, Math.floor(point.x / (shape.cell + shape.gap))));
  return Math.max(0, Math.min(shape.count - 1, row * shape.columns + column));
}
