/** A list that is read page by page. Only the answer to the latest request counts: a list that is
 * read anew while another answer is on its way has no row twice. */
import { describe } from "../api/errors";

interface Page<T> {
  data: T[];
  next_cursor?: string | null;
}

export class Pages<T> {
  rows: T[] = $state.raw([]);
  /** Where the next page starts; null after the last one. */
  next = $state.raw<string | null>(null);
  loaded = $state(false);
  error = $state("");
  private latest = 0;
  private reading = false;

  constructor(private read: (cursor: string | undefined) => Promise<Page<T>>) {}

  /** Reads the first page; the rows that are shown stay until it is there. */
  load(): Promise<void> {
    return this.get(undefined);
  }

  /** Adds the next page; does nothing while another page is read. */
  async more(): Promise<void> {
    if (this.next !== null && !this.reading) await this.get(this.next);
  }

  /** Shows nothing until the next `load`. */
  clear(): void {
    this.latest += 1;
    this.reading = false;
    this.rows = [];
    this.next = null;
    this.loaded = false;
    this.error = "";
  }

  private async get(cursor: string | undefined): Promise<void> {
    const request = ++this.latest;
    this.reading = true;
    try {
      const page = await this.read(cursor);
      if (request !== this.latest) return;
      this.rows = cursor === undefined ? page.data : [...this.rows, ...page.data];
      this.next = page.next_cursor ?? null;
      this.error = "";
    } catch (problem) {
      if (request === this.latest) this.error = describe(problem);
    } finally {
      if (request === this.latest) {
        this.reading = false;
        this.loaded = true;
      }
    }
  }
}
