import { expect, test } from "vitest";
import { ago, bytes, count, duration, percent, spacedPercent } from "./format";

test("a count has the noun in the right number", () => {
  expect(count(1, "photo")).toBe("1 photo");
  expect(count(0, "photo")).toBe("0 photos");
  expect(count(2, "dataset is", "datasets are")).toBe("2 datasets are");
});

test("a share that is not known is a dash", () => {
  expect(percent(null)).toBe("–");
  expect(percent(0.914)).toBe("91 %");
  expect(percent(0.0049, 1)).toBe("0.5 %");
});

test("percentages of the service are written as those of the page", () => {
  expect(spacedPercent("91% of it at 95% purity")).toBe("91 % of it at 95 % purity");
});

test("bytes have one digit while they are small", () => {
  expect(bytes(999)).toBe("999 B");
  expect(bytes(1500)).toBe("1.5 kB");
  expect(bytes(250_000_000)).toBe("250 MB");
});

test("durations are seconds, minutes or hours", () => {
  expect([0.2, 89, 90, 5400].map(duration)).toEqual(["1 s", "89 s", "2 min", "1.5 h"]);
});

test("times are relative within a day", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  expect(ago("2026-01-01T11:59:30Z", now)).toBe("just now");
  expect(ago("2026-01-01T11:58:00Z", now)).toBe("2 minutes ago");
  expect(ago("2026-01-01T11:00:00Z", now)).toBe("1 hour ago");
});
