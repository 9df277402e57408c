/** The jobs that are open, live: few of them by events, the others by asking again. */
import { api, ok } from "../api/client";
import { describe } from "../api/errors";
import { followJob, isOver } from "../api/events";
import type { Job } from "../api/types";

const POLL_MS = 4000;
const MAX_STREAMS = 3; // a browser has six connections to the service
const OPEN = ["running", "cancelling", "queued"] as const;

export class OpenJobs {
  list: Job[] = $state.raw([]);
  loaded = $state(false);
  error = $state("");
  /** Grows when a job has ended. */
  ended = $state(0);
  private streams = new Map<string, () => void>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private closed = false;

  constructor(private datasetId?: string) {
    void this.poll();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
    for (const stop of this.streams.values()) stop();
  }

  async load(): Promise<void> {
    try {
      const pages = await Promise.all(
        OPEN.map((status) => ok(api.GET("/v1/jobs", { params: { query: { status, dataset_id: this.datasetId, limit: 50 } } }))),
      );
      if (this.closed) return;
      this.merge(pages.flatMap((page) => page.data));
      this.error = "";
    } catch (error) {
      this.error = describe(error);
    } finally {
      this.loaded = true;
    }
  }

  private async poll(): Promise<void> {
    if (!document.hidden || !this.loaded) await this.load();
    if (!this.closed) this.timer = setTimeout(() => void this.poll(), POLL_MS);
  }

  /** Those that have ended since stay in the list, so that a person sees the end. */
  private merge(open: Job[]): void {
    const found = new Map(open.map((job) => [job.id, job]));
    const known = this.list.filter((job) => !found.has(job.id));
    this.list = newestFirst([...found.values(), ...known]);
    for (const job of known) if (!isOver(job) && !this.streams.has(job.id)) void this.last(job.id);
    for (const job of open) if (this.streams.size < MAX_STREAMS) this.follow(job.id);
  }

  private follow(id: string): void {
    if (this.streams.has(id)) return;
    this.streams.set(id, followJob(id, (job) => this.update(job)));
  }

  private async last(job_id: string): Promise<void> {
    try {
      this.update(await ok(api.GET("/v1/jobs/{job_id}", { params: { path: { job_id } } })));
    } catch {
      this.list = this.list.filter((job) => job.id !== job_id); // deleted
    }
  }

  private update(job: Job): void {
    this.list = this.list.map((old) => (old.id === job.id ? job : old));
    if (!isOver(job)) return;
    this.streams.get(job.id)?.();
    this.streams.delete(job.id);
    this.ended += 1;
  }
}

function newestFirst(jobs: Job[]): Job[] {
  return jobs.sort((a, b) => b.created_at.localeCompare(a.created_at));
}
