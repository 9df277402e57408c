/** The rows that lassos have selected. */
import { ABSENT } from "./points";

export type Combine = "replace" | "add" | "subtract";

export interface Region {
  mask: Uint8Array; // 1: selected
  count: number;
}

export const empty = (count: number): Region => ({ mask: new Uint8Array(count), count: 0 });

export function combined(region: Region, rows: number[], how: Combine): Region {
  const mask = how === "replace" ? new Uint8Array(region.mask.length) : region.mask.slice();
  const value = how === "subtract" ? 0 : 1;
  for (const row of rows) mask[row] = value;
  let count = 0;
  for (const selected of mask) count += selected;
  return { mask, count };
}

export function rowsOf(region: Region): number[] {
  const rows: number[] = [];
  for (let row = 0; row < region.mask.length; row += 1) if (region.mask[row]) rows.push(row);
  return rows;
}

export interface Share {
  cluster: number;
  selected: number;
  total: number;
}

/** How many photos of each group are selected, most first: "47 of 412". */
export function shares(region: Region, clusters: Int32Array): Share[] {
  const found = new Map<number, Share>();
  for (let row = 0; row < clusters.length; row += 1) {
    const cluster = clusters[row]!;
    if (cluster === ABSENT) continue;
    let share = found.get(cluster);
    if (!share) found.set(cluster, (share = { cluster, selected: 0, total: 0 }));
    share.total += 1;
    share.selected += region.mask[row] ?? 0;
  }
  return [...found.values()].filter((share) => share.selected).sort((a, b) => b.selected - a.selected || a.cluster - b.cluster);
}

/** Where a group is: its middle, and a zoom that shows most of it. */
export function placeOf(rows: Iterable<number>, x: Float32Array, y: Float32Array): { x: number; y: number; zoom: number } | null {
  let [count, sumX, sumY, squares] = [0, 0, 0, 0];
  for (const row of rows) {
    count += 1;
    sumX += x[row]!;
    sumY += y[row]!;
    squares += x[row]! ** 2 + y[row]! ** 2;
  }
  if (!count) return null;
  const middle = { x: sumX / count, y: sumY / count };
  const spread = Math.sqrt(Math.max(0, squares / count - middle.x ** 2 - middle.y ** 2));
  return { ...middle, zoom: Math.max(1, Math.min(40, 1 / Math.max(1e-3, 1.8 * spread))) };
}

// The service takes this many photos in one request.
export const MOST = 10_000;

/** What an edit sends: the photos, or for a large part of one group all but some. Null if there are
 * too many for one request. */
export function toSend(
  parts: Share[], count: number, id: (row: number) => string, selected: () => number[], others: (cluster: number) => number[],
): { image_ids: string[] } | { selection: { cluster_id: number; except_image_ids: string[] } } | null {
  if (count <= MOST) return { image_ids: selected().map(id) };
  const only = parts.length === 1 ? parts[0] : undefined;
  if (!only || only.cluster < 0 || only.total - only.selected > MOST) return null;
  const except = others(only.cluster).map(id);
  return { selection: { cluster_id: only.cluster, except_image_ids: except } };
}
