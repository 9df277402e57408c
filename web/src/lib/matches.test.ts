import { expect, it } from "vitest";
import { bestMatches, sameName } from "./matches";

const names = ["wild rose", "Rosé", "primrose", "tulip"].map((label) => ({ label }));
const found = (typed: string) => bestMatches(names, typed).map(({ label }) => label);

it("prefers the start of a name, then of a word", () => expect(found("rose")).toEqual(["Rosé", "wild rose", "primrose"]));
it("prefers the whole name, since Enter takes the first", () => {
  const groups = ["daisy meadow", "white daisy", "Daisy "].map((label) => ({ label }));
  expect(bestMatches(groups, "daisy").map(({ label }) => label)).toEqual(["Daisy ", "daisy meadow", "white daisy"]);
});
it("lists the first ones before anything is typed", () => expect(bestMatches(names, " ", 2)).toHaveLength(2));
it("finds nothing", () => expect(found("cat")).toEqual([]));
it("compares names as people do", () => {
  expect(sameName(" Cats", "cats")).toBe(true);
  expect(sameName("cat", "cats")).toBe(false);
});
