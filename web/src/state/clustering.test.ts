import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { ClusteringState as State } from "./clustering.svelte";

interface Sent { path: string; ifMatch: string | null; key: string | null; body: unknown }
interface Stored { revision: number; kind: string; arguments: Record<string, unknown> }

/** A service with one clustering of two groups, as far as the state asks for it. */
class FakeService {
  revision = 1;
  offline = false;
  labels = new Map([[0, "cluster 0"], [1, "cluster 1"]]);
  done: Stored[] = [];
  sent: Sent[] = [];
  answers = new Map<string, unknown>();

  fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    if (this.offline) throw new TypeError("Failed to fetch");
    const request = new Request(input instanceof Request ? input : new URL(String(input), "http://service"), init);
    const path = new URL(request.url).pathname;
    if (request.method === "POST") return this.operate(path, request);
    await new Promise((resolve) => setTimeout(resolve, 20)); // reading takes longer than an edit
    if (path.endsWith("/operations")) return Response.json({ data: [...this.done].reverse(), next_cursor: null });
    if (path.endsWith("/clusters")) return Response.json({ data: [...this.labels].map(([cluster_id, label]) => ({ cluster_id, label, named: !label.startsWith("cluster"), size: 5, mean_probability: 0.5, examples: [] })), next_cursor: null });
    if (path.startsWith("/v1/datasets")) return Response.json({ id: "ds_1", name: "flowers" });
    return Response.json({ id: "cl_1", dataset_id: "ds_1", revision: this.revision, undo: null, redo: null });
  };

  async operate(path: string, request: Request): Promise<Response> {
    const body = (await request.json()) as { kind: string; cluster_id: number; label: string };
    const [ifMatch, key] = [request.headers.get("If-Match"), request.headers.get("Idempotency-Key")];
    this.sent.push({ path, ifMatch, key, body });
    if (key && this.answers.has(key)) return Response.json(this.answers.get(key), { status: 201 });
    if (ifMatch !== `"${this.revision}"`) return Response.json({ code: "revision_stale", detail: "stale" }, { status: 412 });
    if (body.label === "refused") return Response.json({ code: "invalid_request", detail: "not this name" }, { status: 422 });
    const answer = this.rename(body.cluster_id, body.label);
    if (key) this.answers.set(key, answer);
    return Response.json(answer, { status: 201 });
  }

  rename(cluster_id: number, label: string) {
    this.revision += 1;
    this.labels.set(cluster_id, label);
    const stored = { revision: this.revision, kind: "rename", arguments: { cluster_id, label }, moved: 0, new_cluster_ids: [], undoes: null, undone_by: null, created_by: null, created_at: "2026-01-01T00:00:00Z" };
    this.done.push(stored);
    return { ...stored, warnings: [] };
  }
}

class MemoryStorage {
  values = new Map<string, string>();
  getItem = (name: string): string | null => this.values.get(name) ?? null;
  setItem = (name: string, value: string): unknown => this.values.set(name, value);
  removeItem = (name: string): boolean => this.values.delete(name);
}

let service: FakeService;
let state: State;
let make: () => State;
const rename = (cluster_id: number, label: string) => state.apply({ kind: "rename", cluster_id, label }, `Named “${label}”`);
async function settled(): Promise<void> {
  while (state.waiting.length && !state.conflict) await Promise.resolve().then(() => new Promise(setImmediate));
}

beforeEach(async () => {
  service = new FakeService();
  vi.stubGlobal("location", { origin: "http://service" });
  vi.stubGlobal("document", { hidden: false });
  vi.stubGlobal("localStorage", new MemoryStorage());
  vi.stubGlobal("sessionStorage", new MemoryStorage());
  vi.stubGlobal("fetch", service.fetch);
  const { ClusteringState } = await import("./clustering.svelte");
  make = () => new ClusteringState("cl_1");
  state = make();
  await vi.waitFor(() => expect(state.clustering).not.toBeNull());
});
afterEach(() => {
  state.close();
  vi.unstubAllGlobals();
});

it("shows an edit at once and sends it with the revision that was seen", async () => {
  rename(0, "cats");
  expect(state.clusters[0]).toMatchObject({ label: "cats", named: true });
  await settled();
  expect(service.sent.map((request) => request.ifMatch)).toEqual(['"1"']);
});

it("does not meet its own edits, however fast they follow", async () => {
  rename(0, "cats");
  rename(1, "dogs");
  await settled();
  rename(0, "lions"); // the others are confirmed, and not loaded yet
  expect(state.clustering?.revision).toBe(1);
  await settled();
  expect(state.conflict).toBeNull();
  expect(service.sent.map((request) => request.ifMatch)).toEqual(['"1"', '"2"', '"3"']);
});

it("keeps an edit while the service does not answer, also over a reload", async () => {
  service.offline = true;
  rename(0, "cats");
  await new Promise((resolve) => setTimeout(resolve, 20));
  state.close();
  service.offline = false;
  state = make();
  await settled();
  expect(service.labels.get(0)).toBe("cats");
});

it("lets two people change different groups, and asks if it is the same one", async () => {
  service.rename(1, "theirs");
  rename(0, "mine");
  await settled();
  expect(state.conflict).toBeNull();
  expect(service.labels.get(0)).toBe("mine");

  await vi.waitFor(() => expect(state.clustering?.revision).toBe(service.revision));
  service.rename(0, "theirs");
  rename(0, "mine again");
  await vi.waitFor(() => expect(state.conflict?.others.map((other) => other.arguments.label)).toEqual(["theirs"]));
  await state.resolve("apply");
  await settled();
  expect(service.labels.get(0)).toBe("mine again");
});

it("discards an edit on request", async () => {
  service.rename(0, "theirs");
  rename(0, "mine");
  await vi.waitFor(() => expect(state.conflict).not.toBeNull());
  await state.resolve("discard");
  expect(state.waiting).toEqual([]);
  expect(state.clusters[0]?.label).toBe("theirs");
});

it("drops only the edit that is refused", async () => {
  rename(0, "refused");
  rename(1, "dogs");
  await settled();
  expect([...service.labels.values()]).toEqual(["cluster 0", "dogs"]);
});
