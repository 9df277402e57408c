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

it("asks one question at a time, then the latest, and ignores older answers", async () => {
  const answers: (() => void)[] = [];
  ask.mockImplementation((_, level) => new Promise((resolve) => void answers.push(() => resolve(answer(level)))));
  const done = view.load(5);
  void view.load(4);
  void view.load(3);
  expect([ask.mock.calls.length, view.settled]).toEqual([1, false]);
  answers[0]?.();
  await vi.waitFor(() => expect(ask).toHaveBeenCalledTimes(2));
  expect([ask.mock.calls[1]?.[1], view.groups]).toEqual([3, null]);
  answers[1]?.();
  await done;
  expect([view.groups?.length, view.settled]).toEqual([3, true]);
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
