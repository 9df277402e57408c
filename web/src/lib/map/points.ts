/** Reads the Arrow files of a map and of a clustering's labels, and joins them by image id. */
import { tableFromIPC, type Data, type Table, type Utf8 } from "apache-arrow";
import { GridIndex } from "./grid-index";

export const EXCLUDED = -1; // the person took the photo out of the clustering
export const ABSENT = -2; // the clustering does not have the photo, or it was deleted

const text = new TextDecoder();

/** A column of texts in one piece. `at` decodes a row when it is needed: a million texts take longer
 * than everything else. */
export class TextColumn {
  private constructor(
    private readonly offsets: Int32Array,
    private readonly bytes: Uint8Array,
  ) {}

  static from(parts: Data<Utf8>[]): TextColumn {
    const length = sum(parts.map((part) => part.length));
    const size = sum(parts.map((part) => part.valueOffsets[part.length]! - part.valueOffsets[0]!));
    const offsets = new Int32Array(length + 1);
    const bytes = new Uint8Array(size);
    let row = 0;
    let end = 0;
    for (const part of parts) {
      const first = part.valueOffsets[0]!;
      const last = part.valueOffsets[part.length]!;
      bytes.set(part.values.subarray(first, last), end);
      for (let at = 1; at <= part.length; at += 1) offsets[row + at] = part.valueOffsets[at]! - first + end;
      row += part.length;
      end += last - first;
    }
    return new TextColumn(offsets, bytes);
  }

  get length(): number {
    return this.offsets.length - 1;
  }

  at(row: number): string {
    return text.decode(this.bytes.subarray(this.offsets[row], this.offsets[row + 1]));
  }

  /** Whether a row has the same text as a row of another column. */
  same(row: number, other: TextColumn, otherRow: number): boolean {
    const [start, end] = [this.offsets[row]!, this.offsets[row + 1]!];
    const shift = other.offsets[otherRow]! - start;
    if (other.offsets[otherRow + 1]! - shift !== end) return false;
    // Ids of one upload differ at their ends.
    for (let at = end - 1; at >= start; at -= 1) if (this.bytes[at] !== other.bytes[at + shift]) return false;
    return true;
  }

  /** The first row with a text, or -1. */
  find(wanted: string): number {
    const other = TextColumn.of(wanted);
    for (let row = 0; row < this.length; row += 1) if (this.same(row, other, 0)) return row;
    return -1;
  }

  private static of(value: string): TextColumn {
    const bytes = new TextEncoder().encode(value);
    return new TextColumn(Int32Array.of(0, bytes.length), bytes);
  }

  /** A number for each different text, by its first appearance; -1 for no text. */
  numbered(): { codes: Int32Array; texts: string[] } {
    const codes = new Int32Array(this.length).fill(-1);
    const texts: string[] = [];
    const known = new Map<number, number[]>(); // hash: rows with different texts
    for (let row = 0; row < this.length; row += 1) {
      if (this.offsets[row] === this.offsets[row + 1]) continue;
      const hash = this.hash(row);
      const rows = known.get(hash) ?? [];
      const first = rows.find((candidate) => this.same(row, this, candidate));
      if (first !== undefined) codes[row] = codes[first]!;
      else {
        codes[row] = texts.length;
        texts.push(this.at(row));
        known.set(hash, [...rows, row]);
      }
    }
    return { codes, texts };
  }

  private hash(row: number): number {
    let hash = 0x811c9dc5; // FNV-1a
    for (let at = this.offsets[row]!; at < this.offsets[row + 1]!; at += 1) hash = Math.imul(hash ^ this.bytes[at]!, 0x01000193);
    return hash;
  }
}

/** Where the photos are. */
export interface Points {
  ids: TextColumn;
  x: Float32Array;
  y: Float32Array;
  index: GridIndex;
}

/** Which group each point of the map is in. Rows are those of the map. */
export interface Labels {
  clusters: Int32Array; // or EXCLUDED, ABSENT
  probabilities: Float32Array;
  name: (row: number) => string;
  trueLabel: (row: number) => string;
  trueLabels: () => { codes: Int32Array; texts: string[] };
  missing: number; // photos of the clustering that are not on the map
}

export function readPoints(bytes: Uint8Array): Points {
  const table = tableFromIPC(bytes);
  const x = floats(table, "x");
  const y = floats(table, "y");
  return { ids: texts(table, "image_id"), x, y, index: new GridIndex(x, y) };
}

export function readLabels(bytes: Uint8Array, points: Points): Labels {
  const table = tableFromIPC(bytes);
  const ids = texts(table, "image_id");
  const rows = joined(points.ids, ids);
  const found = rows.reduce((count, row) => count + (row >= 0 ? 1 : 0), 0);
  const once = <T>(make: () => T): (() => T) => {
    let made: T | undefined;
    return () => (made ??= make());
  };
  const names = once(() => texts(table, "name"));
  const truth = once(() => texts(table, "true_label"));
  const of = (column: () => TextColumn) => (row: number) => (rows[row]! < 0 ? "" : column().at(rows[row]!));
  return {
    clusters: joinedClusters(table, rows),
    probabilities: Float32Array.from(rows, ((values) => (row) => (row < 0 ? 0 : values[row]!))(floats(table, "probability"))),
    name: of(names),
    trueLabel: of(truth),
    trueLabels: once(() => {
      const { codes, texts: found } = truth().numbered();
      return { codes: Int32Array.from(rows, (row) => (row < 0 ? -1 : codes[row]!)), texts: found };
    }),
    missing: ids.length - found,
  };
}

/** For each row of `left`, the row of `right` with the same id, or -1. Both are in the order of the
 * upload, so that rows are equal one by one until photos were added or deleted. */
export function joined(left: TextColumn, right: TextColumn): Int32Array {
  const rows = new Int32Array(left.length).fill(-1);
  let same = 0;
  while (same < left.length && same < right.length && left.same(same, right, same)) rows[same] = same++;
  if (same === left.length || same === right.length) return rows;
  const known = new Map<string, number>();
  for (let row = same; row < right.length; row += 1) known.set(right.at(row), row);
  for (let row = same; row < left.length; row += 1) rows[row] = known.get(left.at(row)) ?? -1;
  return rows;
}

function joinedClusters(table: Table, rows: Int32Array): Int32Array {
  const values = new Int32Array(table.numRows);
  let start = 0;
  for (const part of parts(table, "cluster_id")) {
    const numbers = part.values as Int32Array;
    for (let row = 0; row < part.length; row += 1) values[start + row] = part.getValid(row) ? numbers[row]! : EXCLUDED;
    start += part.length;
  }
  return Int32Array.from(rows, (row) => (row < 0 ? ABSENT : values[row]!));
}

function parts(table: Table, name: string): Data[] {
  const found = table.getChild(name)?.data;
  if (!found) throw new Error(`The file has no column ${name}; it may be of another version of the service.`);
  return [...found];
}

const texts = (table: Table, name: string): TextColumn => TextColumn.from(parts(table, name) as Data<Utf8>[]);

function floats(table: Table, name: string): Float32Array {
  const values = new Float32Array(table.numRows);
  let start = 0;
  for (const part of parts(table, name)) {
    values.set((part.values as Float32Array | Float64Array).subarray(0, part.length), start);
    start += part.length;
  }
  return values;
}

const sum = (values: number[]): number => values.reduce((total, value) => total + value, 0);
