/** What lies over the points: photos where there is room for them, the lasso, and marks. */
import { request } from "../../api/client";
import { thumbnailPath } from "../../api/pictures";
import type { GridIndex } from "./grid-index";
import { pixelsPerUnit, shownArea, toScreen, type Point, type Size, type View } from "./view";

const SIDE = 60; // of a photo, in pixels
const ROOM = 68;
const CROWDED = 3; // points per place for a photo: more are shown as dots
const MOST_LOADED = 600;
const PARALLEL = 8;

export interface Scene {
  view: View;
  size: Size;
  ratio: number;
  index: GridIndex;
  photos: boolean;
  id: (row: number) => string;
  color: (row: number) => string;
  shown: (row: number) => boolean;
  selected: (row: number) => boolean;
  marked: number[]; // rows with a ring
  lasso: Point[]; // pixels
  accent: string;
  surface: string;
}

export class Overlay {
  /** Where photos were drawn, for the pointer. */
  private placed: { row: number; at: Point }[] = [];
  private loaded = new Map<string, ImageBitmap | null>(); // null: cannot be read
  private loading = new Map<string, AbortController>();
  private wanted: string[] = [];
  private closed = false;
  private blank = false;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly again: () => void,
  ) {}

  draw(scene: Scene): void {
    const pen = this.canvas.getContext("2d");
    if (!pen) return;
    const empty = !scene.lasso.length && scene.marked.every((row) => row < 0);
    this.placed = scene.photos ? placesFor(scene) : [];
    this.load(this.placed.map((place) => scene.id(place.row)));
    // Without a graphics card, clearing an empty canvas in each frame costs as much as the points.
    if (empty && !this.placed.length && this.blank) return;
    this.blank = empty && !this.placed.length;
    const [width, height] = [Math.round(scene.size.width * scene.ratio), Math.round(scene.size.height * scene.ratio)];
    if (this.canvas.width !== width || this.canvas.height !== height) [this.canvas.width, this.canvas.height] = [width, height];
    pen.setTransform(scene.ratio, 0, 0, scene.ratio, 0, 0);
    pen.clearRect(0, 0, scene.size.width, scene.size.height);
    for (const place of this.placed) this.photo(pen, scene, place.row, place.at);
    for (const row of scene.marked) this.mark(pen, scene, row);
    outline(pen, scene);
  }

  /** The photo under the pointer, or -1. */
  rowAt(point: Point): number {
    const found = this.placed.findLast(({ at }) => Math.abs(at.x - point.x) <= SIDE / 2 && Math.abs(at.y - point.y) <= SIDE / 2);
    return found?.row ?? -1;
  }

  destroy(): void {
    this.closed = true;
    for (const request of this.loading.values()) request.abort();
    for (const bitmap of this.loaded.values()) bitmap?.close();
    this.loaded.clear();
  }

  private photo(pen: CanvasRenderingContext2D, scene: Scene, row: number, at: Point): void {
    const bitmap = this.loaded.get(scene.id(row));
    const [left, top] = [at.x - SIDE / 2, at.y - SIDE / 2];
    if (!bitmap) return; // its dot is there
    pen.fillStyle = scene.surface;
    pen.fillRect(left, top, SIDE, SIDE);
    pen.drawImage(bitmap, left, top, SIDE, SIDE);
    const selected = scene.selected(row);
    pen.lineWidth = selected ? 4 : 3;
    pen.strokeStyle = selected ? scene.accent : scene.color(row);
    pen.strokeRect(left, top, SIDE, SIDE);
  }

  private mark(pen: CanvasRenderingContext2D, scene: Scene, row: number): void {
    const place = this.placed.find((candidate) => candidate.row === row);
    if (!place || !this.loaded.get(scene.id(row))) return ring(pen, scene, row);
    pen.lineWidth = 4;
    pen.strokeStyle = scene.accent;
    pen.strokeRect(place.at.x - SIDE / 2 - 4, place.at.y - SIDE / 2 - 4, SIDE + 8, SIDE + 8);
  }

  private load(ids: string[]): void {
    const needed = new Set(ids);
    for (const [id, request] of this.loading) if (!needed.has(id)) request.abort();
    for (const id of ids) {
      const bitmap = this.loaded.get(id);
      if (bitmap === undefined) continue;
      this.loaded.delete(id); // to the end: the newest
      this.loaded.set(id, bitmap);
    }
    this.wanted = ids.filter((id) => !this.loaded.has(id) && !this.loading.has(id));
    this.fill();
  }

  private fill(): void {
    while (this.loading.size < PARALLEL && this.wanted.length) void this.fetch(this.wanted.shift()!);
  }

  private async fetch(id: string): Promise<void> {
    const stop = new AbortController();
    this.loading.set(id, stop);
    try {
      const response = await request(thumbnailPath(id, 128), { signal: stop.signal });
      this.keep(id, await square(await response.blob()));
    } catch {
      if (!stop.signal.aborted) this.keep(id, null);
    }
    this.loading.delete(id);
    if (this.closed) return;
    this.fill();
    this.again();
  }

  private keep(id: string, bitmap: ImageBitmap | null): void {
    if (this.closed) return bitmap?.close();
    this.loaded.set(id, bitmap);
    for (const [old, picture] of this.loaded) {
      if (this.loaded.size <= MOST_LOADED) break;
      picture?.close();
      this.loaded.delete(old);
    }
  }
}

/** The middle square of a picture. */
async function square(blob: Blob): Promise<ImageBitmap> {
  const whole = await createImageBitmap(blob);
  const side = Math.min(whole.width, whole.height);
  const middle = await createImageBitmap(whole, (whole.width - side) / 2, (whole.height - side) / 2, side, side);
  whole.close();
  return middle;
}

/** One photo per place, if the places are not crowded. The places are fixed to the map, so that
 * photos stay while the map is panned. */
export function placesFor(scene: Pick<Scene, "view" | "size" | "index" | "shown">): { row: number; at: Point }[] {
  const { view, size, index } = scene;
  const area = shownArea(view, size, SIDE / 2);
  const most = CROWDED * Math.ceil((size.width * size.height) / ROOM ** 2);
  const near = index.ranges(area, 0).reduce((count, [start, end]) => count + end - start, 0);
  if (near > 4 * most) return [];
  const side = 2 ** Math.ceil(Math.log2(ROOM / pixelsPerUnit(view, size)));
  const first = new Map<string, number>();
  let count = 0;
  index.within(area, (row) => {
    if (!scene.shown(row)) return;
    count += 1;
    const place = `${Math.floor(index.x[row]! / side)} ${Math.floor(index.y[row]! / side)}`;
    const other = first.get(place);
    if (other === undefined || row < other) first.set(place, row);
  });
  if (count > most) return [];
  const placed: { row: number; at: Point }[] = [];
  for (const row of [...first.values()].sort((a, b) => a - b)) {
    const at = toScreen({ x: index.x[row]!, y: index.y[row]! }, view, size);
    if (placed.every((other) => Math.abs(other.at.x - at.x) > SIDE + 4 || Math.abs(other.at.y - at.y) > SIDE + 4)) placed.push({ row, at });
  }
  return placed;
}

function ring(pen: CanvasRenderingContext2D, scene: Scene, row: number): void {
  if (row < 0) return;
  const at = toScreen({ x: scene.index.x[row]!, y: scene.index.y[row]! }, scene.view, scene.size);
  for (const [width, color] of [[6, scene.surface], [3, scene.accent]] as const) {
    pen.lineWidth = width;
    pen.strokeStyle = color;
    pen.beginPath();
    pen.arc(at.x, at.y, 11, 0, 2 * Math.PI);
    pen.stroke();
  }
}

function outline(pen: CanvasRenderingContext2D, scene: Scene): void {
  if (scene.lasso.length < 2) return;
  pen.beginPath();
  for (const point of scene.lasso) pen.lineTo(point.x, point.y);
  pen.closePath();
  pen.globalAlpha = 0.15;
  pen.fillStyle = scene.accent;
  pen.fill("evenodd");
  pen.globalAlpha = 1;
  pen.lineWidth = 2;
  pen.strokeStyle = scene.accent;
  pen.setLineDash([6, 4]);
  pen.stroke();
  pen.setLineDash([]);
}
