import { expect, it } from "vitest";
import { giveLetters } from "./letters";

const group = (cluster_id: number, label: string) => ({ cluster_id, label });

it("takes the first free letter of the name", () => {
  const letters = giveLetters([group(1, "Tulip"), group(2, "tiger"), group(3, "Μούσα"), group(4, "mixed")], "mx");
  expect([...letters]).toEqual([[1, "t"], [2, "i"], [3, "a"], [4, "e"]]);
});

it("keeps the letters that are known", () => {
  expect(giveLetters([group(2, "tiger"), group(1, "tulip")], "", new Map([[1, "t"]])).get(2)).toBe("i");
});

it("gives a group without a name its number", () => {
  const letters = giveLetters([{ cluster_id: 7, label: "cluster 7", named: false }, { cluster_id: 17, label: "cluster 17", named: false }], "");
  expect([...letters.values()]).toEqual(["7", "1"]);
});
