/** Collects what is wanted for a moment and hands on only the latest: a fast scroll over a hundred
 * pages asks for those where it slows down. */
const QUIET_MS = 40;
const MAX_WAIT_MS = 200;

export class LatestOnly<T> {
  private wanted = new Map<T, number>(); // when it was asked for
  private timer: ReturnType<typeof setTimeout> | undefined;
  private since = 0;

  /** `take` gets the latest, and how many were dropped. */
  constructor(private take: (latest: T[], dropped: number) => void) {}

  add(value: T): void {
    const now = performance.now();
    if (!this.wanted.size) this.since = now;
    this.wanted.set(value, now);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), Math.max(0, Math.min(QUIET_MS, this.since + MAX_WAIT_MS - now)));
  }

  private flush(): void {
    const entries = [...this.wanted];
    this.wanted.clear();
    const newest = Math.max(...entries.map(([, time]) => time));
    const latest = entries.filter(([, time]) => time >= newest - QUIET_MS).map(([value]) => value);
    this.take(latest, entries.length - latest.length);
  }
}
