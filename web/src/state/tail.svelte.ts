/** Rows that a job adds while it runs: its log, its curves. */
const POLL_MS = 2000;

export class Tail<T> {
  rows: T[] = $state.raw([]);
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(
    private read: (after: number | undefined) => Promise<{ data: T[]; has_more: boolean }>,
    private position: (row: T) => number,
    private isOver: () => boolean,
  ) {
    void this.poll();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private async poll(): Promise<void> {
    // Asked before reading: rows that were written at the end are read once more.
    const last = this.isOver();
    try {
      if (!document.hidden || last) await this.load();
    } catch {
      // The next look may succeed; the shell shows that the connection is lost.
      if (!this.closed) this.timer = setTimeout(() => void this.poll(), POLL_MS);
      return;
    }
    if (!this.closed && !last) this.timer = setTimeout(() => void this.poll(), POLL_MS);
  }

  private async load(): Promise<void> {
    let more = true;
    while (more && !this.closed) {
      const newest = this.rows.at(-1);
      const page = await this.read(newest === undefined ? undefined : this.position(newest));
      if (page.data.length) this.rows = [...this.rows, ...page.data];
      more = page.has_more;
    }
  }
}
