/** Rate and time left of something that advances, over the last seconds. */
const WINDOW_MS = 8000;

export class Rate {
  private samples: { at: number; done: number }[] = [];

  add(done: number, now = performance.now()): void {
    const last = this.samples.at(-1);
    if (last && done < last.done) this.samples = []; // it started again further back
    this.samples.push({ at: now, done });
    while (this.samples.length > 2 && now - (this.samples[0]?.at ?? now) > WINDOW_MS) this.samples.shift();
  }

  reset(): void {
    this.samples = [];
  }

  /** Per second; null until it can be said. */
  perSecond(): number | null {
    const first = this.samples[0];
    const last = this.samples.at(-1);
    if (!first || !last || last.at - first.at < 500) return null;
    return ((last.done - first.done) * 1000) / (last.at - first.at);
  }

  secondsLeft(total: number): number | null {
    const rate = this.perSecond();
    const done = this.samples.at(-1)?.done ?? 0;
    return rate ? (total - done) / rate : null;
  }
}
