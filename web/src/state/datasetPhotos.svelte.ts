/** All photos of a dataset. Deleted ones are hidden at once and leave the list when the service has
 * deleted them. */
import { all, api, ok, request } from "../api/client";
import { ApiError } from "../api/errors";
import type { Photo } from "../api/types";
import { afterRemoval, ascending } from "../lib/removal";
import { shifted } from "../lib/shift";
import { PhotoList, type Cursors, type PhotoItem } from "./photos.svelte";

const EVERY = 200;
const WALKED = 1000; // rows per page for a service without cursors

export type DatasetPhoto = Photo & PhotoItem;

export class DatasetPhotos {
  private readonly list: PhotoList<DatasetPhoto>;
  private readonly readAll: () => Promise<Photo[]>;
  private places = new Map<string, number>(); // of all photos that were seen
  private deleted = new Map<string, number[]>(); // by deletion
  private hidden: number[] = $state.raw([]);

  constructor(datasetId: string) {
    this.readAll = () => all((cursor) => ok(api.GET("/v1/datasets/{dataset_id}/images", { params: { path: { dataset_id: datasetId }, query: { limit: WALKED, cursor } } })));
    this.list = new PhotoList(
      () => readCursors(datasetId),
      (cursor, limit) => readPage(datasetId, cursor, limit),
    );
  }

  get count(): number {
    return Math.max(0, this.list.count - this.hidden.length);
  }

  get loaded(): boolean {
    return this.list.loaded;
  }

  get error(): string {
    return this.list.error;
  }

  async load(): Promise<void> {
    await this.list.load();
    this.places.clear();
  }

  at(index: number): DatasetPhoto | undefined {
    const place = shifted(index, this.hidden);
    const photo = this.list.at(place);
    if (photo) this.places.set(photo.image_id, place);
    return photo;
  }

  async range(first: number, last: number): Promise<DatasetPhoto[]> {
    const from = shifted(first, this.hidden);
    const found = await this.list.range(from, shifted(last, this.hidden));
    const hidden = new Set(this.hidden);
    found.forEach((photo, index) => this.places.set(photo.image_id, from + index));
    return found.filter((_, index) => !hidden.has(from + index));
  }

  /** The ids of all photos that are shown; the list itself keeps only some pages in memory. */
  async ids(): Promise<string[]> {
    const photos = await this.readAll();
    const hidden = new Set(this.hidden);
    photos.forEach((photo, place) => this.places.set(photo.id, place));
    return photos.filter((_, place) => !hidden.has(place)).map((photo) => photo.id);
  }

  /** Hides photos that were seen in the list. */
  hide(key: string, ids: Iterable<string>): void {
    const places = [...ids].map((id) => this.places.get(id)).filter((place) => place !== undefined);
    this.deleted.set(key, ascending(places));
    this.refresh();
  }

  show(key: string): void {
    this.deleted.delete(key);
    this.refresh();
  }

  /** The service has deleted them: the others move up. */
  async dropped(key: string): Promise<void> {
    const gone = this.deleted.get(key) ?? [];
    await this.load();
    this.deleted.delete(key);
    for (const [other, places] of this.deleted) this.deleted.set(other, afterRemoval(places, gone));
    this.refresh();
  }

  private refresh(): void {
    this.hidden = ascending([...this.deleted.values()].flat());
  }
}

async function readCursors(datasetId: string): Promise<Cursors> {
  try {
    const response = await request(`/v1/datasets/${encodeURIComponent(datasetId)}/images/cursors?every=${EVERY}`);
    return (await response.json()) as Cursors;
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 405)) return walk(datasetId);
    throw error;
  }
}

/** The cursors of a service that cannot list them: page by page. */
async function walk(dataset_id: string): Promise<Cursors> {
  const cursors: (string | null)[] = [];
  let cursor: string | null = null;
  let count = 0;
  do {
    cursors.push(cursor);
    const query: { limit: number; cursor?: string } = { limit: WALKED, cursor: cursor ?? undefined };
    const page = await ok(api.GET("/v1/datasets/{dataset_id}/images", { params: { path: { dataset_id }, query } }));
    count += page.data.length;
    cursor = page.next_cursor ?? null;
  } while (cursor);
  return { count, every: WALKED, cursors };
}

async function readPage(dataset_id: string, cursor: string | null, limit: number): Promise<DatasetPhoto[]> {
  const query = { limit, cursor: cursor ?? undefined };
  const page = await ok(api.GET("/v1/datasets/{dataset_id}/images", { params: { path: { dataset_id }, query } }));
  return page.data.map((photo) => ({ ...photo, image_id: photo.id }));
}
