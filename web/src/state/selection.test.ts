import { expect, it } from "vitest";
import { Selection } from "./selection.svelte";

it("selects single photos", () => {
  const selection = new Selection();
  selection.only("a");
  selection.toggle("b");
  selection.toggle("a");
  expect([selection.has("a"), selection.has("b"), selection.size(9)]).toEqual([false, true, 1]);
  expect(selection.images(4)).toEqual({ image_ids: ["b"] });
});

it("selects all but some in one request", () => {
  const selection = new Selection();
  selection.all();
  selection.toggle("a");
  expect([selection.has("a"), selection.has("z"), selection.size(1204)]).toEqual([false, true, 1203]);
  expect(selection.images(4)).toEqual({ selection: { cluster_id: 4, except_image_ids: ["a"] } });
  selection.add(["a"]);
  expect(selection.images(4)).toEqual({ selection: { cluster_id: 4, except_image_ids: [] } });
});

it("selects all that match", () => {
  const selection = new Selection();
  selection.all({ probability: 0.6, count: 37 });
  expect([selection.has("a", 0.6), selection.has("b", 0.7), selection.size(1204)]).toEqual([true, false, 37]);
  selection.toggle("b", 0.7); // does not match: stays out
  selection.toggle("a", 0.5);
  expect(selection.size(1204)).toBe(36);
  expect(selection.images(4)).toEqual({ selection: { cluster_id: 4, max_probability: 0.6, except_image_ids: ["a"] } });
  selection.clear();
  expect(selection.empty).toBe(true);
});
