import { beforeEach, expect, it, vi } from "vitest";
import { groupHierarchy } from "../api/groups";
import type { Hierarchy } from "../api/types";
import { CoarserView } from "./coarser.svelte";
import { toasts } from "./toasts.svelte";

vi.mock("../api/groups", () => ({ groupHierarchy: vi.fn() }));

const answer = (n_groups: number): Hierarchy => ({
  revision: 1, n_groups, costs: [], groups: Array.from({ length: n_groups }, (_, id) => ({ cluster_ids: [id], size: 1, label: "" })),
});
const ask = vi.mocked(groupHierarchy);
let view: CoarserView;

beforeEach(() => {
  ask.mockReset();
  toasts.shown = [];
  view = new CoarserView("cl_1");
});

it("ignores the answers to older questions", async () => {
  const answers: ((found: Hierarchy) => void)[] = [];
  ask.mockImplementation(() => new Promise((resolve) => void answers.push(resolve)));
  const [first, second] = [view.load(5), view.load(3)];
  expect(view.settled).toBe(false);
  answers[1]?.(answer(3));
  await second;
  expect([view.groups?.length, view.settled]).toEqual([3, true]);
  answers[0]?.(answer(5));
  await first;
  expect(view.groups?.length).toBe(3);
});

it("keeps the sections until the next answer, and ends with none", async () => {
  ask.mockResolvedValue(answer(4));
  await view.load(4);
  const next = view.load(2);
  expect(view.groups?.length).toBe(4);
  await view.load(null);
  await next;
  expect(view.groups).toBe(null);
});

it("shows the plain wall and a message if the service cannot", async () => {
  ask.mockRejectedValue(new Error("no features"));
  await view.load(4);
  expect([view.groups, view.settled]).toEqual([null, true]);
  expect(toasts.shown[0]?.text).toContain("cannot be shown as 4 groups");
});
