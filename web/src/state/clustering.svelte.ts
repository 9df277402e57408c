/** A clustering, its groups and its edits, as two or more people change them at the same time. */
import { all, api, ok, request } from "../api/client";
import { ApiError, describe } from "../api/errors";
import type { AppliedOperation, Cluster, Clustering, Dataset, Operation, OperationCreate } from "../api/types";
import { randomId } from "../lib/ids";
import { loadEdits, saveEdits, type Edit, type Source } from "./edits";
import { independent } from "./overlap";
import { preview } from "./preview";
import { toasts } from "./toasts.svelte";

const POLL_MS = 1500;
const RETRY_MS = 1000;
const EXAMPLES = 8; // two rows of four on a card

export interface Conflict {
  edit: Edit;
  others: Operation[]; // what was changed since the person looked
}

export class ClusteringState {
  clustering: Clustering | null = $state.raw(null);
  dataset: Dataset | null = $state.raw(null);
  clusters: Cluster[] = $state.raw([]);
  error = $state("");
  /** Edits that are not confirmed yet. */
  waiting: Edit[] = $state.raw([]);
  conflict: Conflict | null = $state.raw(null);
  /** Grows when the photos of groups may have changed. */
  changes = $state(0);

  private timer: ReturnType<typeof setTimeout> | undefined;
  private sending = false;
  private closed = false;
  private watchers = 0;
  private loads = 0;
  private message = 0;
  private own = new Map<number, string>(); // what this person did, by revision
  private confirmed = 0; // the newest revision that is known to have this person's edits

  constructor(readonly id: string) {
    this.waiting = loadEdits(id);
    void this.load().then(() => this.send());
    this.poll();
  }

  readonly byId = $derived(new Map(this.clusters.map((cluster) => [cluster.cluster_id, cluster])));
  /** Photos of the clustering that are in no group. */
  readonly excluded = $derived(Math.max(0, (this.clustering?.image_count ?? 0) - this.clusters.reduce((sum, cluster) => sum + cluster.size, 0)));
  readonly names = $derived([...new Set(this.clusters.filter((c) => c.named).map((c) => c.label))].sort());
  /** Whether there is something to undo; edits that still wait can be undone after them. */
  readonly canUndo = $derived(this.clustering !== null && (this.waiting.length > 0 || this.clustering.undo !== null));
  readonly canRedo = $derived(
    this.waiting.length ? this.waiting[this.waiting.length - 1]?.operation.kind === "undo" : (this.clustering?.redo ?? null) !== null,
  );

  label(clusterId: number): string {
    return this.byId.get(clusterId)?.label ?? `cluster ${clusterId}`;
  }

  /** While a page watches, edits of other people are looked for. Returns a stop. */
  watch(): () => void {
    this.watchers += 1;
    return () => (this.watchers -= 1);
  }

  async load(): Promise<void> {
    const load = ++this.loads;
    try {
      const path = { clustering_id: this.id };
      const clustering: Clustering = await ok(api.GET("/v1/clusterings/{clustering_id}", { params: { path } }));
      const query = { limit: 1000, examples: EXAMPLES };
      const clusters = (await all((cursor) =>
        ok(api.GET("/v1/clusterings/{clustering_id}/clusters", { params: { path, query: { ...query, cursor } } })),
      )) as Cluster[];
      if (this.dataset?.id !== clustering.dataset_id) {
        const dataset_id = clustering.dataset_id;
        this.dataset = await ok(api.GET("/v1/datasets/{dataset_id}", { params: { path: { dataset_id } } }));
      }
      // An edit was confirmed meanwhile, or a newer load has begun: this state would jump back.
      if (load !== this.loads || clustering.revision < this.confirmed) return;
      const changed = clustering.revision !== this.clustering?.revision;
      this.clustering = clustering;
      // What waits is shown on top of what the service has.
      this.clusters = this.waiting.reduce((shown, edit) => preview(shown, edit.operation, edit.source), clusters);
      this.error = "";
      if (changed) this.changes += 1;
    } catch (error) {
      if (load === this.loads) this.error = describe(error);
    }
  }

  /** Shows the edit at once and sends it. `said` is what the person did, for the message;
   * `source` is where the photos of a move come from, so that the sizes change at once. */
  apply(operation: OperationCreate, said: string, source?: Source): void {
    this.clusters = preview(this.clusters, operation, source);
    this.keep([...this.waiting, { key: randomId(), seen: this.seen, operation, said, source }]);
    void this.send();
  }

  undo(): void {
    this.apply({ kind: "undo" }, "Undone");
  }

  /** Undoes this change, and not one that another person made after it. */
  undoOwn(revision: number): void {
    const newest = this.clustering?.undo;
    if (this.waiting.length || newest === undefined || newest === revision || this.seen === revision) this.undo();
    else toasts.error("There is a newer change: undo that one first. The history shows it.");
  }

  redo(): void {
    this.apply({ kind: "redo" }, "Done again");
  }

  /** The edit that met another person's: on top of theirs, or not at all. */
  async resolve(choice: "apply" | "discard"): Promise<void> {
    const edit = this.conflict?.edit;
    this.conflict = null;
    if (!edit) return;
    if (choice === "discard") this.keep([]);
    await this.load();
    if (choice === "discard") {
      this.changes += 1; // photos that have left their group are back
      return;
    }
    const [first, ...rest] = this.waiting.map((entry) => ({ ...entry, seen: this.seen }));
    // The answer to the old key would be the refusal that is known.
    if (first) this.keep([{ ...first, key: randomId() }, ...rest]);
    void this.send();
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  private get seen(): number {
    return Math.max(this.clustering?.revision ?? 0, this.confirmed);
  }

  private keep(edits: Edit[]): void {
    this.waiting = edits;
    saveEdits(this.id, edits);
  }

  private async send(): Promise<void> {
    if (this.sending || this.conflict) return;
    this.sending = true;
    try {
      while (!this.closed && this.waiting.length && (await this.sendFirst()));
    } finally {
      this.sending = false;
    }
  }

  /** Sends the first edit; false if sending must stop. */
  private async sendFirst(): Promise<boolean> {
    const edit = this.waiting[0];
    if (!edit) return false;
    try {
      const done = await this.post(edit);
      this.confirmed = done.revision;
      const rest = this.waiting.slice(1).map((next) => ({ ...next, seen: done.revision }));
      this.keep(rest);
      this.say(edit, done);
      if (!rest.length) void this.load();
      return true;
    } catch (error) {
      return this.refused(edit, error);
    }
  }

  private async refused(edit: Edit, error: unknown): Promise<boolean> {
    const refusal = error instanceof ApiError ? error : null;
    if (refusal?.status === 401) return false; // sent after the reload with a key
    if (refusal && (refusal.temporary || refusal.code === "idempotency_in_progress")) {
      await new Promise((resolve) => setTimeout(resolve, (refusal.retryAfter ?? 0) * 1000 || RETRY_MS));
      return true;
    }
    if (refusal?.status === 412) return this.meet(edit);
    this.keep(this.waiting.slice(1));
    toasts.error(`Not saved: ${edit.said}. ${describe(error)}`);
    await this.load();
    this.changes += 1;
    return true;
  }

  private async post(edit: Edit): Promise<AppliedOperation> {
    const response = await request(`/v1/clusterings/${encodeURIComponent(this.id)}/operations`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        "If-Match": `"${edit.seen}"`,
        "Idempotency-Key": edit.key,
      },
      body: JSON.stringify(edit.operation),
    });
    return (await response.json()) as AppliedOperation;
  }

  /** One message at a time: its Undo is the undo of the newest change. */
  private say(edit: Edit, done: AppliedOperation): void {
    this.own.set(done.revision, edit.said);
    toasts.remove(this.message);
    const undone = done.undoes === null ? undefined : this.own.get(done.undoes);
    const text = undone && done.kind === "undo" ? `Undone: ${undone}` : edit.said;
    const action = { label: "Undo", run: () => this.undoOwn(done.revision) };
    this.message = toasts.add(text, done.kind === "undo" ? {} : { action });
  }

  /** Another person was first. True if the edit goes on top of theirs without a question. */
  private async meet(edit: Edit): Promise<boolean> {
    let others: Operation[] = [];
    try {
      others = await this.since(edit.seen);
    } catch (error) {
      if (error instanceof ApiError && error.temporary) return this.refused(edit, error);
    }
    const newest = Math.max(edit.seen, ...others.map((operation) => operation.revision));
    if (others.length === newest - edit.seen && independent(edit, others)) {
      this.keep(this.waiting.map((entry) => ({ ...entry, seen: newest, key: entry === edit ? randomId() : entry.key })));
      return true;
    }
    this.conflict = { edit, others };
    return false;
  }

  private async since(revision: number): Promise<Operation[]> {
    const path = { clustering_id: this.id };
    const newest = await ok(api.GET("/v1/clusterings/{clustering_id}/operations", { params: { path, query: { limit: 50 } } }));
    return newest.data.filter((operation) => operation.revision > revision);
  }

  /** Asks every 1.5 seconds whether another person has edited the clustering. */
  private poll(): void {
    this.timer = setTimeout(async () => {
      if (this.watchers && !document.hidden && !this.sending && !this.waiting.length) {
        try {
          const known = this.clustering ? { "If-None-Match": `"${this.clustering.revision}"` } : undefined;
          const response = await request(`/v1/clusterings/${encodeURIComponent(this.id)}`, { headers: known });
          const changed = response.status !== 304 && (await revisionOf(response)) !== this.seen;
          if (changed || !this.clustering || this.error) await this.load();
        } catch {
          // The next look may succeed; the shell shows that the connection is lost.
        }
      }
      if (!this.closed) this.poll();
    }, POLL_MS);
  }
}

async function revisionOf(response: Response): Promise<number> {
  return ((await response.json()) as Clustering).revision;
}

let open: ClusteringState | null = null;
let release = (): void => undefined;

/** The state of a clustering; pages of one clustering share it. */
export function openClustering(id: string): ClusteringState {
  if (open?.id === id) return open;
  open?.close();
  release();
  const { state, stop } = rooted(() => new ClusteringState(id));
  release = stop;
  return (open = state);
}

/** What is derived from the state must outlive the page that was the first to open it. */
function rooted<T>(make: () => T): { state: T; stop: () => void } {
  const made: T[] = [];
  const stop = $effect.root(() => void made.push(make()));
  return { state: made[0] as T, stop };
}
