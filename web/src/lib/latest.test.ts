import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { LatestOnly } from "./latest";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

it("hands on what was asked for together, soon", () => {
  const take = vi.fn();
  const queue = new LatestOnly<number>(take);
  for (const page of [1, 2, 2, 3]) queue.add(page);
  vi.advanceTimersByTime(45);
  expect(take.mock.calls).toEqual([[[1, 2, 3], 0]]);
});

it("drops what a fast scroll has passed", () => {
  const take = vi.fn();
  const queue = new LatestOnly<number>(take);
  for (let page = 0; page < 10; page += 1) {
    queue.add(page);
    vi.advanceTimersByTime(15);
  }
  vi.advanceTimersByTime(100);
  expect(take).toHaveBeenCalledTimes(1);
  expect(take.mock.calls[0]).toEqual([[7, 8, 9], 7]);
});

it("does not wait for the end of a long scroll", () => {
  const take = vi.fn();
  const queue = new LatestOnly<number>(take);
  for (let page = 0; page < 40; page += 1) {
    queue.add(page);
    vi.advanceTimersByTime(15);
  }
  expect(take.mock.calls.length).toBeGreaterThan(1);
});
