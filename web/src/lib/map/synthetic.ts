/** Arrow files of a made-up map, to measure with; not part of the built page. */
import { Field, Float32, Float64, Int32, RecordBatch, Schema, Struct, Table, Utf8, makeData, tableToIPC, type Data } from "apache-arrow";

export interface ArrowFiles {
  map: Uint8Array;
  labels: Uint8Array;
}

const GROUPS = 42;
const ID_BYTES = 30;

export function syntheticFiles(count: number): ArrowFiles {
  const random = generator(1);
  const centers = Array.from({ length: GROUPS }, () => [random() * 1.7 - 0.85, random() * 1.7 - 0.85] as const);
  const x = new Float32Array(count);
  const y = new Float32Array(count);
  const clusters = new Int32Array(count);
  const probabilities = new Float64Array(count);
  for (let row = 0; row < count; row += 1) {
    const group = Math.floor(random() ** 1.4 * GROUPS);
    const [radius, angle] = [0.14 * Math.sqrt(-Math.log(1 - random() * 0.98)) * (0.5 + 0.5 * random()), random() * 2 * Math.PI];
    x[row] = Math.max(-1, Math.min(1, centers[group]![0] + radius * Math.cos(angle)));
    y[row] = Math.max(-1, Math.min(1, centers[group]![1] + radius * Math.sin(angle)));
    clusters[row] = group;
    probabilities[row] = Math.max(0, 1 - radius * 4);
  }
  const ids = texts(count, ID_BYTES, (row) => `img_${String(row).padStart(26, "0")}`);
  const names = texts(count, 12, (row) => `${String(row).padStart(8, "0")}.jpg`);
  const truth = texts(count, 8, (row) => `label ${String(clusters[row]).padStart(2, "0")}`);
  return {
    map: file({ image_id: ids, x: numbers(new Float32(), x), y: numbers(new Float32(), y) }, "file"),
    labels: file({
      image_id: ids, name: names, cluster_id: numbers(new Int32(), clusters), probability: numbers(new Float64(), probabilities), true_label: truth,
    }, "stream"),
  };
}

function numbers(type: Float32 | Float64 | Int32, data: Float32Array | Float64Array | Int32Array): Data {
  return makeData({ type, data, length: data.length } as Parameters<typeof makeData>[0]) as Data;
}

function texts(count: number, width: number, make: (row: number) => string): Data {
  const data = new Uint8Array(count * width);
  const encoder = new TextEncoder();
  for (let row = 0; row < count; row += 1) encoder.encodeInto(make(row), data.subarray(row * width, (row + 1) * width));
  const valueOffsets = Int32Array.from({ length: count + 1 }, (_, row) => row * width);
  return makeData({ type: new Utf8(), length: count, valueOffsets, data }) as Data;
}

function file(columns: Record<string, Data>, kind: "file" | "stream"): Uint8Array {
  const fields = Object.entries(columns).map(([name, data]) => new Field(name, data.type as Utf8, true));
  const schema = new Schema(fields);
  const children = Object.values(columns);
  const batch = new RecordBatch(schema, makeData({ type: new Struct(fields), length: children[0]?.length ?? 0, children, nullCount: 0 }));
  return tableToIPC(new Table(schema, [batch]), kind);
}

/** Mulberry32: the same map every time. */
function generator(seed: number): () => number {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let value = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
}
