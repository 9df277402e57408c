import { expect, test } from "vitest";
import { Rate } from "./rate";

test("rate and time left come from the last seconds", () => {
  const rate = new Rate();
  expect(rate.perSecond()).toBeNull();
  for (let second = 0; second <= 30; second += 1) rate.add(second < 20 ? 0 : (second - 20) * 100, second * 1000);
  expect(rate.perSecond()).toBe(100);
  expect(rate.secondsLeft(2000)).toBe(10);
});

test("a step back starts anew", () => {
  const rate = new Rate();
  rate.add(500, 0);
  rate.add(1000, 1000);
  rate.add(200, 2000);
  expect(rate.perSecond()).toBeNull();
});
