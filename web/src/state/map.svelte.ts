/** The map of a clustering's dataset: its points, their groups, and the job that makes it. */
import { request } from "../api/client";
import { describe } from "../api/errors";
import { followJob, isOver } from "../api/events";
import type { Job, Operation } from "../api/types";
import { randomId } from "../lib/ids";
import { readLabels, readPoints, type Labels, type Points } from "../lib/map/points";
import type { ClusteringState } from "./clustering.svelte";

const ARROW_STREAM = "application/vnd.apache.arrow.stream";
const NEWEST = 50;

export type Phase = "looking" | "none" | "reading" | "ready" | "failed";

export class MapState {
  phase: Phase = $state("looking");
  error = $state("");
  /** Bytes that were read so far. */
  read = $state(0);
  points: Points | null = $state.raw(null);
  labels: Labels | null = $state.raw(null);
  /** The job that makes a map, while it runs or if it failed. */
  job: Job | null = $state.raw(null);

  private revision = 0; // of the labels
  private refreshing = false;
  private assigned = false; // the labels show an edit that the service may have refused
  private stop: () => void = () => undefined;

  constructor(readonly clustering: ClusteringState) {}

  /** Finds the newest map of the dataset and reads it. */
  async load(datasetId: string): Promise<void> {
    this.phase = "looking";
    try {
      const jobs = await newestMaps(datasetId);
      const running = jobs.find((job) => !isOver(job));
      if (running) this.follow(running);
      const done = jobs.find((job) => job.status === "succeeded");
      if (done) await this.open(done);
      else {
        this.phase = "none";
        if (!running && jobs[0]?.status === "failed") this.job = jobs[0];
      }
    } catch (error) {
      this.fail(error);
    }
  }

  /** Starts a job that makes the map, with the features that the clustering was made of. */
  async make(): Promise<void> {
    const clustering = this.clustering.clustering;
    if (!clustering) return;
    this.error = "";
    try {
      const body = { kind: "map", dataset_id: clustering.dataset_id, ...(await featuresOf(clustering.job_id)) };
      const response = await request("/v1/jobs", {
        method: "POST",
        headers: { "Content-Type": "application/json", "Idempotency-Key": randomId() },
        body: JSON.stringify(body),
      });
      this.follow((await response.json()) as Job);
    } catch (error) {
      this.error = describe(error);
    }
  }

  /** Reads the labels anew if an edit has changed which group photos are in. */
  async refresh(): Promise<void> {
    const now = this.clustering.clustering?.revision ?? 0;
    const waiting = this.clustering.waiting.length > 0; // what it will change is shown already
    if (this.refreshing || waiting || !this.points || this.phase !== "ready") return;
    if (now === this.revision && !this.assigned) return;
    this.refreshing = true;
    try {
      if (!this.assigned && (await this.onlyRenamed(now))) this.revision = now;
      else await this.readLabels(this.points);
    } catch (error) {
      this.error = describe(error);
    } finally {
      this.refreshing = false;
    }
    if ((this.clustering.clustering?.revision ?? 0) > this.revision && !this.error) void this.refresh();
  }

  /** Shows rows in another group at once, before the service has answered. */
  assign(rows: number[], cluster: number): void {
    if (!this.labels) return;
    const clusters = this.labels.clusters.slice();
    for (const row of rows) clusters[row] = cluster;
    this.assigned = true;
    this.labels = { ...this.labels, clusters };
  }

  /** Shows a map from files, to measure with. */
  show(files: { map: Uint8Array; labels: Uint8Array }): void {
    performance.mark("map-data");
    const points = readPoints(files.map);
    this.labels = readLabels(files.labels, points);
    this.points = points;
    this.phase = "ready";
  }

  close(): void {
    this.stop();
  }

  private async open(job: Job): Promise<void> {
    this.phase = "reading";
    this.read = 0;
    const file = await this.bytes(`/v1/jobs/${encodeURIComponent(job.id)}/map`);
    const labels = await this.labelBytes();
    performance.mark("map-data");
    const points = readPoints(file);
    this.labels = readLabels(labels.bytes, points);
    this.revision = labels.revision;
    this.points = points;
    this.phase = "ready";
  }

  private async readLabels(points: Points): Promise<void> {
    const { bytes, revision } = await this.labelBytes();
    if (this.clustering.waiting.length) return; // another edit came in between
    this.labels = readLabels(bytes, points);
    this.revision = revision;
    this.assigned = false;
    this.error = "";
  }

  private async labelBytes(): Promise<{ bytes: Uint8Array; revision: number }> {
    const dataset = encodeURIComponent(this.clustering.clustering?.dataset_id ?? "");
    const path = `/v1/datasets/${dataset}/labels?clustering_id=${encodeURIComponent(this.clustering.id)}`;
    const response = await request(path, { headers: { Accept: ARROW_STREAM } });
    return { bytes: await this.body(response), revision: Number(response.headers.get("X-Revision")) };
  }

  private async bytes(path: string): Promise<Uint8Array> {
    return this.body(await request(path));
  }

  /** The body of an answer; counts the bytes as they come. */
  private async body(response: Response): Promise<Uint8Array> {
    const counted = new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        this.read += chunk.byteLength;
        controller.enqueue(chunk);
      },
    });
    return new Uint8Array(await new Response(response.body?.pipeThrough(counted)).arrayBuffer());
  }

  private async onlyRenamed(now: number): Promise<boolean> {
    if (now - this.revision > NEWEST) return false;
    const response = await request(`/v1/clusterings/${encodeURIComponent(this.clustering.id)}/operations?limit=${NEWEST}`);
    const operations = ((await response.json()) as { data: Operation[] }).data;
    return operations.filter((operation) => operation.revision > this.revision).every((operation) => operation.kind === "rename");
  }

  private follow(job: Job): void {
    this.stop();
    this.job = job;
    this.stop = followJob(job.id, (next) => {
      this.job = next.status === "succeeded" ? null : next;
      if (next.status === "succeeded") void this.open(next).catch((error: unknown) => this.fail(error));
    });
  }

  private fail(error: unknown): void {
    this.phase = "failed";
    this.error = describe(error);
  }
}

/** Jobs that make maps of a dataset, newest first. */
async function newestMaps(datasetId: string): Promise<Job[]> {
  const query = new URLSearchParams({ dataset_id: datasetId, kind: "map", limit: String(NEWEST) });
  const response = await request(`/v1/jobs?${query}`);
  const jobs = ((await response.json()) as { data: Job[] }).data;
  return jobs.filter((job) => job.kind === "map");
}

/** The backbone and precision of the job that made a clustering: its features are stored already. */
async function featuresOf(jobId: string | null): Promise<Record<string, unknown>> {
  if (!jobId) return {};
  try {
    const response = await request(`/v1/jobs/${encodeURIComponent(jobId)}`);
    const { backbone, precision } = ((await response.json()) as Job).config;
    return { ...(backbone ? { backbone } : {}), ...(precision ? { precision } : {}) };
  } catch {
    return {}; // the job was deleted; the service has defaults
  }
}
