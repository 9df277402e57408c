import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { AnswerCreate, ReviewQuestion } from "../api/types";
import type { ReviewState as State } from "./review.svelte";

/** A service with one group of photos that people are asked about. */
class FakeService {
  offline = false;
  left = Array.from({ length: 60 }, (_, index) => `img_${index}`);
  stored = new Map<string, AnswerCreate>();
  requests = 0;

  fetch = async (input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> => {
    if (this.offline) throw new TypeError("Failed to fetch");
    const request = new Request(new URL(String(input), "http://service"), init);
    const { pathname, searchParams } = new URL(request.url);
    if (request.method === "POST") return this.store((await request.json()) as { answers: AnswerCreate[] });
    if (request.method === "DELETE") return this.stored.delete(pathname.split("/").pop() ?? "") ? new Response(null, { status: 204 }) : Response.json({}, { status: 404 });
    if (!pathname.endsWith("/queue")) return Response.json({ min_purity: Number(searchParams.get("min_purity")), clusters: [] });
    const data = this.left.filter((id) => !this.stored.has(id)).slice(0, Number(searchParams.get("limit")));
    return Response.json({ revision: 1, data: data.map((image_id): ReviewQuestion => ({ image_id, name: image_id, cluster_id: 3, label: "cats", probability: 0.9, sample: true })) });
  };

  store({ answers }: { answers: AnswerCreate[] }): Response {
    this.requests += 1;
    for (const answer of answers) this.stored.set(answer.image_id, answer);
    return Response.json({ revision: 1, stored: answers.map((answer) => answer.image_id), refused: [] });
  }
}

let service: FakeService;
let make: () => State;
let review: State;
const storage = new Map<string, string>();

beforeEach(async () => {
  vi.useFakeTimers();
  storage.clear();
  vi.stubGlobal("location", { origin: "http://service", hash: "" });
  vi.stubGlobal("sessionStorage", { getItem: () => null });
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => storage.get(name) ?? null,
    setItem: (name: string, value: string) => storage.set(name, value),
    removeItem: (name: string) => storage.delete(name),
  });
  service = new FakeService();
  vi.stubGlobal("fetch", service.fetch);
  const { ReviewState } = await import("./review.svelte");
  make = () => new ReviewState("cl_1", () => 0.95);
  review = make();
  await review.load();
});
afterEach(() => {
  review.close();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

it("shows the next photo at once and sends the answer", async () => {
  review.answer("yes");
  expect(review.current?.image_id).toBe("img_1");
  review.answer("which", 5);
  await vi.advanceTimersByTimeAsync(100);
  expect(service.stored.get("img_0")).toEqual({ image_id: "img_0", cluster_id: 3, sample: true, answer: "yes" });
  expect(service.stored.get("img_1")).toMatchObject({ answer: "which", belongs_to: 5 });
  expect(review.waiting).toEqual([]);
});

it("reads more before the last one, and none twice", async () => {
  const asked: string[] = [];
  while (review.current) {
    asked.push(review.current.image_id);
    review.answer("yes");
    await vi.advanceTimersByTimeAsync(10);
  }
  expect(asked).toHaveLength(60);
  expect(new Set(asked).size).toBe(60);
});

it("keeps answers while the service is away, also over a reload", async () => {
  service.offline = true;
  for (let n = 0; n < 5; n++) review.answer("no");
  await vi.advanceTimersByTimeAsync(1500);
  expect(review.waiting).toHaveLength(5);
  review = make();
  expect(review.waiting).toHaveLength(5);
  service.offline = false;
  await review.load();
  await vi.advanceTimersByTimeAsync(3000);
  expect(service.stored.size).toBe(5);
  expect(review.current?.image_id).toBe("img_5");
});

it("takes the last answers back", async () => {
  review.answer("yes");
  review.answer("none");
  await vi.advanceTimersByTimeAsync(100);
  await review.undo();
  await vi.advanceTimersByTimeAsync(100);
  expect([...service.stored.keys()]).toEqual(["img_0"]);
  expect(review.current?.image_id).toBe("img_1");
  await review.undo();
  expect(review.current?.image_id).toBe("img_0");
  await review.undo(); // nothing is left to take back
  expect(review.current?.image_id).toBe("img_0");
});

it("asks about skipped photos when the others are done", async () => {
  service.left = ["img_0", "img_1", "img_2"];
  review = make();
  await review.load();
  review.skip();
  review.answer("yes");
  review.answer("yes");
  await vi.advanceTimersByTimeAsync(100);
  expect(review.current?.image_id).toBe("img_0");
});
