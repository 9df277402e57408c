/** A long list of photos with random access: any page is one request, and few stay in memory. */
import { SvelteMap } from "svelte/reactivity";
import { ApiError, describe } from "../api/errors";
import { LatestOnly } from "../lib/latest";
import { shifted } from "../lib/shift";

export interface Cursors {
  count: number;
  every: number;
  cursors: (string | null)[];
}

export interface PhotoItem {
  image_id: string;
  name: string;
  probability?: number;
}

const MAX_PAGES = 60;
const AT_ONCE = 8;
const RETRY_MS = 1500;
const AGAIN_MS = 120;

export class PhotoList<T extends PhotoItem> {
  loaded = $state(false);
  error = $state("");
  private total = $state(0);
  /** Indexes of photos that left the list before the service has confirmed it, in order. */
  private gone: number[] = $state.raw([]);
  private every = 200;
  private cursors: (string | null)[] = [];
  private pages = new SvelteMap<number, T[]>();
  /** The pages before the last `load`: shown until the new ones are there. */
  private old = new Map<number, T[]>();
  private requested = new Set<number>();
  private generation = 0;
  private loading: Promise<void> = Promise.resolve();
  /** Grows after a fast scroll: what is in view then asks again for its pages. */
  private asked = $state(0);
  private again: ReturnType<typeof setTimeout> | undefined;
  private readonly queue = new LatestOnly<number>((pages, dropped) => {
    for (const page of pages) void this.want(page);
    if (!dropped) return;
    clearTimeout(this.again);
    this.again = setTimeout(() => (this.asked += 1), AGAIN_MS);
  });

  constructor(
    private readCursors: () => Promise<Cursors>,
    private readPage: (cursor: string | null, limit: number) => Promise<T[]>,
  ) {}

  readonly count = $derived(Math.max(0, this.total - this.gone.length));

  /** Reads the list anew; the photos that are shown stay until the new ones are there. */
  load(): Promise<void> {
    return (this.loading = this.read());
  }

  private async read(): Promise<void> {
    const generation = ++this.generation;
    try {
      const found = await this.readCursors();
      if (generation !== this.generation) return;
      this.every = found.every;
      this.cursors = found.cursors;
      this.old = this.withoutGone();
      this.requested = new Set();
      this.gone = [];
      this.total = found.count;
      this.error = "";
      // Only pages that are in view are asked for again.
      this.pages.clear();
    } catch (error) {
      if (generation === this.generation) this.error = describe(error);
    } finally {
      if (generation === this.generation) this.loaded = true;
    }
  }

  /** The photo at an index, or undefined while its page is read. */
  at(index: number): T | undefined {
    const place = shifted(index, this.gone);
    const page = Math.floor(place / this.every);
    const rows = this.pages.get(page);
    void this.asked;
    if (!rows) queueMicrotask(() => this.queue.add(page));
    return (rows ?? this.old.get(page))?.[place % this.every];
  }

  /** Photos from one index to another, both included; reads pages that are missing. */
  async range(first: number, last: number): Promise<T[]> {
    const places: number[] = [];
    for (let index = first; index <= last; index += 1) places.push(shifted(index, this.gone));
    const rows = await this.rowsOf([...new Set(places.map((place) => Math.floor(place / this.every)))]);
    return places.flatMap((place) => rows.get(Math.floor(place / this.every))?.[place % this.every] ?? []);
  }

  /** The rows of pages, a few requests at a time. They are held here: the list forgets the first
   * pages of a long range before the last ones are read. */
  private async rowsOf(pages: number[]): Promise<Map<number, T[]>> {
    const rows = new Map<number, T[]>();
    for (let start = 0; start < pages.length; start += AT_ONCE) {
      const some = pages.slice(start, start + AT_ONCE);
      await Promise.all(some.map((page) => this.rowsOfOne(page).then((found) => rows.set(page, found))));
    }
    return rows;
  }

  /** A page is asked for again when the list was read anew in the meantime. */
  private async rowsOfOne(page: number): Promise<T[]> {
    let generation: number;
    do {
      generation = this.generation;
      await this.loading;
      await this.want(page);
    } while (generation !== this.generation);
    return this.pages.get(page) ?? [];
  }

  /** Where a photo is, if its page was read. */
  indexOf(id: string): number {
    for (const [page, rows] of this.pages) {
      const found = rows.findIndex((row) => row.image_id === id);
      if (found < 0) continue;
      const place = page * this.every + found;
      return place - this.gone.filter((before) => before < place).length;
    }
    return -1;
  }

  /** Where a photo is; reads pages from the first one on until it is found, as many as are kept. */
  async find(id: string): Promise<number> {
    const end = Math.min(this.cursors.length, MAX_PAGES);
    for (let start = 0; start < end && this.indexOf(id) < 0; start += AT_ONCE) {
      await this.rowsOf(Array.from({ length: Math.min(AT_ONCE, end - start) }, (_, offset) => start + offset));
    }
    return this.indexOf(id);
  }

  /** Takes photos out of the list at once, before the service has answered; returns where the
   * first of them was, or -1. */
  remove(leaves: (photo: T) => boolean): number {
    const found = new Set(this.gone);
    let first = Infinity;
    for (const [page, rows] of this.pages) {
      for (const [offset, row] of rows.entries()) {
        const place = page * this.every + offset;
        if (found.has(place) || !leaves(row)) continue;
        first = Math.min(first, place);
        found.add(place);
      }
    }
    if (found.size === this.gone.length) return -1;
    const index = first - this.gone.filter((before) => before < first).length;
    this.gone = [...found].sort((a, b) => a - b);
    return index;
  }

  /** Empties the list at once: all of its photos leave. */
  removeAll(): void {
    this.gone = Array.from({ length: this.total }, (_, index) => index);
  }

  private readonly reading = new Map<number, Promise<void>>();

  private want(page: number): Promise<void> {
    const running = this.reading.get(page);
    if (running && this.requested.has(page)) return running;
    if (this.requested.has(page) || page >= this.cursors.length) return Promise.resolve();
    this.requested.add(page);
    const work = this.fetch(page, this.generation).finally(() => {
      if (this.reading.get(page) === work) this.reading.delete(page);
    });
    this.reading.set(page, work);
    return work;
  }

  private async fetch(page: number, generation: number): Promise<void> {
    while (generation === this.generation) {
      try {
        const rows = await this.readPage(this.cursors[page] ?? null, this.every);
        if (generation !== this.generation) return;
        this.pages.set(page, rows);
        this.error = "";
        this.forgetFarFrom(page);
        return;
      } catch (error) {
        if (generation !== this.generation) return;
        this.error = describe(error);
        if (!(error instanceof ApiError && error.temporary)) return;
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }

  /** What is shown: pages of this list, otherwise those of the list before it. */
  private withoutGone(): Map<number, T[]> {
    const left = new Set(this.gone);
    const shown = [...new Map([...this.old, ...this.pages])].slice(-MAX_PAGES);
    return new Map(shown.map(([page, rows]) => [page, rows.filter((_, offset) => !left.has(page * this.every + offset))]));
  }

  private forgetFarFrom(page: number): void {
    if (this.pages.size <= MAX_PAGES) return;
    const far = [...this.pages.keys()].sort((a, b) => Math.abs(b - page) - Math.abs(a - page));
    for (const old of far.slice(0, this.pages.size - MAX_PAGES)) {
      this.pages.delete(old);
      this.requested.delete(old);
    }
  }
}
