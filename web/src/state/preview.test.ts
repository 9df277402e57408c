import { describe, expect, it } from "vitest";
import type { Cluster } from "../api/types";
import { preview, survivor } from "./preview";

const group = (cluster_id: number, size: number, named = false): Cluster => ({
  cluster_id,
  label: named ? `name ${cluster_id}` : `cluster ${cluster_id}`,
  named,
  size,
  mean_probability: 0.5,
  examples: [{ image_id: `img_${cluster_id}`, name: "a.jpg", probability: 0.9 }],
});
const groups = [group(0, 10), group(1, 30, true), group(2, 30)];
const sizes = (clusters: Cluster[]): [number, number][] => clusters.map((c) => [c.cluster_id, c.size]);

describe("preview", () => {
  it("renames", () => {
    const after = preview(groups, { kind: "rename", cluster_id: 0, label: "cats" });
    expect(after[0]).toMatchObject({ label: "cats", named: true });
    expect(after[1]).toBe(groups[1]);
  });

  it("merges into the largest, and of two equal ones into the first", () => {
    expect(survivor(groups, [0, 2, 1])).toBe(1);
    const after = preview(groups, { kind: "merge", cluster_ids: [0, 1, 2] });
    expect(sizes(after)).toEqual([[1, 70]]);
    expect(after[0]?.label).toBe("name 1");
  });

  it("merges into the chosen one with a new name", () => {
    const after = preview(groups, { kind: "merge", cluster_ids: [0, 2], into: 0, label: "dogs" });
    expect(after[0]).toMatchObject({ cluster_id: 0, size: 40, label: "dogs", named: true, mean_probability: 0.5 });
  });

  it("takes moved photos from one group to another", () => {
    const source = { cluster_id: 0, count: 4 };
    const after = preview(groups, { kind: "move", image_ids: ["img_0"], cluster_id: 2 }, source);
    expect(sizes(after)).toEqual([[0, 6], [1, 30], [2, 34]]);
    expect(after[0]?.examples).toEqual([]);
  });

  it("excludes all of a group", () => {
    const after = preview(groups, { kind: "exclude", selection: { cluster_id: 2, except_image_ids: [] } }, { cluster_id: 2, count: 30 });
    expect(sizes(after)).toEqual([[0, 10], [1, 30], [2, 0]]);
  });

  it("changes nothing if photos move to their own group, and for an undo", () => {
    expect(preview(groups, { kind: "move", image_ids: ["img_0"], cluster_id: 0 }, { cluster_id: 0, count: 1 })).toBe(groups);
    expect(preview(groups, { kind: "undo" })).toBe(groups);
  });
});
