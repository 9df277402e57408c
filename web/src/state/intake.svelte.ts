/** From files to groups: sends the files, lets the service read them, then starts the clustering.
 * Lives as long as the tab, whatever page is shown, and goes on after a reload. */
import { api, ok, request } from "../api/client";
import { ApiError, describe } from "../api/errors";
import { isOver } from "../api/events";
import type { Job } from "../api/types";
import type { Picked } from "../lib/files";
import { randomId } from "../lib/ids";
import { deletions } from "./deletions.svelte";
import { isElsewhere, loadPlans, removePlan, savePlan, type Plan } from "./plans";
import { Transfer } from "./transfer.svelte";

const POLL_MS = 1000;
const RETRY_MS = 3000;
const SAVE_MS = 2000;
const TAB = "temi-tab";
/** Another job uses the dataset, or another tab does the same: it works when that has ended. */
const LATER = new Set(["dataset_in_use", "idempotency_in_progress"]);

/** interrupted: the browser has lost the files; the same ones must be dropped again. */
export type IntakeStatus = "sending" | "interrupted" | "reading" | "starting" | "done" | "failed";

export interface Wanted {
  name: string;
  dataset?: { id: string; name: string }; // adds to it
  groups: Plan["groups"];
  labels: Plan["labels"];
}

export class Intake {
  plan: Plan = $state.raw() as Plan;
  status: IntakeStatus = $state("sending");
  transfer: Transfer | null = $state.raw(null);
  reading: Job | null = $state.raw(null);
  clustering: Job | null = $state.raw(null);
  error = $state("");
  /** Why it waits. */
  note = $state("");
  /** Started by this visit: the page may follow it to the job. */
  fresh = false;

  constructor(plan: Plan) {
    this.plan = plan;
  }

  send(blob: Blob): void {
    this.fresh = true;
    this.status = "sending";
    this.error = "";
    this.transfer?.close();
    let savedAt = 0;
    const keep = (uploadUrl: string | null, sent: number): void => {
      if (Date.now() - savedAt < SAVE_MS) return;
      savedAt = Date.now();
      this.change({ uploadUrl, sent, tab: thisTab(), seenAt: savedAt });
    };
    this.transfer = new Transfer(blob, this.plan.fingerprint, (id) => this.sent(id), keep);
    void this.transfer.start();
  }

  /** Goes on with what needs no files. */
  resume(): void {
    if (this.plan.stage === "sending") this.status = "interrupted";
    else void this.work();
  }

  /** After an error: a temporary one, or one that the person has mended. */
  again(): void {
    savePlan(this.plan);
    if (this.plan.stage === "sending") this.transfer?.resume();
    else void this.work();
  }

  /** Stops the upload; what has arrived is deleted when the way back is over. */
  cancel(): void {
    this.transfer?.pause();
    intakes.forget(this);
    const url = this.transfer?.url ?? this.plan.uploadUrl;
    deletions.add({
      id: this.plan.id,
      said: `Cancelled the upload of ${this.plan.name}`,
      calls: url ? [{ path: url, method: "DELETE", headers: { "Tus-Resumable": "1.0.0" } }] : [],
      undone: () => {
        intakes.putBack(this);
        this.transfer?.resume();
      },
      done: () => this.transfer?.close(),
    });
  }

  private sent(uploadId: string): void {
    this.change({ stage: "sent", uploadId, sent: this.plan.bytes });
    void this.work();
  }

  private async work(): Promise<void> {
    try {
      this.error = "";
      this.status = "reading";
      if (this.plan.stage === "sent") await this.create();
      const job = await this.read();
      if (job.status === "succeeded") await this.cluster();
      else this.fail(job.error?.detail ?? "Reading the photos was cancelled.");
    } catch (error) {
      this.fail(describe(error));
    }
  }

  private async create(): Promise<void> {
    const { plan } = this;
    const source = { type: "upload", upload_id: plan.uploadId };
    const path = plan.adds ? `/v1/datasets/${encodeURIComponent(plan.datasetId ?? "")}/images` : "/v1/datasets";
    const body = { source, labels_from: plan.labels, ...(plan.adds ? {} : { name: plan.name }) };
    const job = await patiently(() => post<Job>(path, body, plan.id), (note) => (this.note = note));
    this.reading = job;
    this.change({ stage: "reading", jobId: job.id, datasetId: job.dataset_id });
  }

  private async read(): Promise<Job> {
    const path = { job_id: this.plan.jobId ?? "" };
    for (;;) {
      const job = await patiently(() => ok(api.GET("/v1/jobs/{job_id}", { params: { path } })));
      this.reading = job;
      if (isOver(job)) return job;
      await sleep(POLL_MS);
    }
  }

  private async cluster(): Promise<void> {
    const { groups, datasetId, id } = this.plan;
    if (groups !== null) {
      this.status = "starting";
      const body = { kind: "cluster", dataset_id: datasetId, n_clusters: groups };
      this.clustering = await patiently(() => post<Job>("/v1/jobs", body, `${id}-cluster`));
    }
    removePlan(id);
    this.status = "done";
    intakes.changes += 1;
  }

  private change(changes: Partial<Plan>): void {
    this.plan = { ...this.plan, ...changes };
    savePlan(this.plan);
  }

  private fail(error: string): void {
    this.status = "failed";
    this.error = error;
    removePlan(this.plan.id); // a reload would fail again
    intakes.changes += 1;
  }
}

class Intakes {
  list: Intake[] = $state.raw([]);
  /** Grows when a dataset may have changed. */
  changes = $state(0);

  constructor() {
    for (const plan of loadPlans()) if (!isElsewhere(plan, thisTab())) this.restore(plan);
    window.addEventListener("beforeunload", (event) => {
      if (this.list.some((intake) => intake.transfer && intake.transfer.status !== "sent" && intake.status === "sending")) event.preventDefault();
    });
  }

  /** Sends files. The same files as of an interrupted upload go on with that one. */
  start(picked: Picked, wanted: Wanted): Intake {
    const earlier = this.interrupted(picked);
    const plan = earlier?.plan ?? newPlan(picked);
    const { dataset, ...rest } = wanted;
    const changed: Plan = { ...plan, ...rest, adds: Boolean(dataset), datasetId: dataset?.id ?? null, name: dataset?.name ?? wanted.name };
    savePlan(changed);
    const intake = new Intake(changed);
    this.list = [intake, ...this.list.filter((other) => other !== earlier)];
    intake.send(picked.blob);
    return intake;
  }

  interrupted(picked: Picked): Intake | undefined {
    return this.list.find((intake) => intake.status === "interrupted" && intake.plan.fingerprint === picked.fingerprint);
  }

  forget(intake: Intake): void {
    removePlan(intake.plan.id);
    this.list = this.list.filter((other) => other !== intake);
  }

  putBack(intake: Intake): void {
    savePlan(intake.plan);
    this.list = [intake, ...this.list];
  }

  of(datasetId: string): Intake[] {
    return this.list.filter((intake) => intake.plan.datasetId === datasetId);
  }

  private restore(plan: Plan): void {
    const intake = new Intake(plan);
    this.list = [...this.list, intake];
    intake.resume();
  }
}

function newPlan(picked: Picked): Plan {
  const { fingerprint, files, bytes } = picked;
  return {
    id: randomId(), tab: thisTab(), name: picked.name, datasetId: null, adds: false, groups: null, labels: "none",
    fingerprint, files, bytes, sent: 0, stage: "sending", uploadId: null, uploadUrl: null, jobId: null, seenAt: Date.now(),
  };
}

/** The same after a reload of the tab, another in every other tab. */
function thisTab(): string {
  const known = sessionStorage.getItem(TAB) ?? randomId();
  sessionStorage.setItem(TAB, known);
  return known;
}

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Tries again while the service cannot be reached, is full, or uses the dataset. */
async function patiently<T>(run: () => Promise<T>, say: (note: string) => void = () => undefined): Promise<T> {
  for (;;) {
    try {
      const answer = await run();
      say("");
      return answer;
    } catch (error) {
      if (!(error instanceof ApiError && (error.temporary || LATER.has(error.code)))) throw error;
      say(error.code === "dataset_in_use" ? "Waits until another job has finished with this dataset." : error.message);
      await sleep((error.retryAfter ?? 0) * 1000 || RETRY_MS);
    }
  }
}

async function post<T>(path: string, body: unknown, key: string): Promise<T> {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": key };
  return (await (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json()) as T;
}

export const intakes = new Intakes();
