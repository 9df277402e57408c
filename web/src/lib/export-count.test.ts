import { describe, expect, it } from "vitest";
import type { Cluster, ReviewReport } from "../api/types";
import { countByPurity, countBySizes, countLines, type ExportChoice } from "./export-count";

const all: ExportChoice = { revision: null, groups: null, minProbability: 0, includeExcluded: false };
const clusters = [{ cluster_id: 1, size: 10 }, { cluster_id: 2, size: 5 }] as Cluster[];

describe("the number of photos of an export", () => {
  it("is the sum of the groups' sizes", () => {
    expect(countBySizes(all, clusters, 3)).toBe(15);
    expect(countBySizes({ ...all, groups: [2] }, clusters, 3)).toBe(5);
    expect(countBySizes({ ...all, includeExcluded: true }, clusters, 3)).toBe(18);
  });

  it("must be counted for a probability or an old revision", () => {
    expect(countBySizes({ ...all, minProbability: 0.5 }, clusters, 3)).toBeNull();
    expect(countBySizes({ ...all, revision: 2 }, clusters, 3)).toBeNull();
  });

  it("is that of pure groups and confirmed photos above a purity", () => {
    const report = {
      excluded_images: 3,
      clusters: [{ cluster_id: 1, size: 10, reviewed: 6, wrong: 1, meets: true }, { cluster_id: 2, size: 5, reviewed: 3, wrong: 1, meets: false }],
    } as ReviewReport;
    expect(countByPurity(all, report)).toBe(9 + 2);
    expect(countByPurity({ ...all, groups: [2], includeExcluded: true }, report)).toBe(2 + 3);
  });

  it("counts lines, however they are cut", async () => {
    const text = [1, 2, null, 2].map((group) => `${JSON.stringify({ name: "é\n", cluster_id: group })}\n`).join("");
    const bytes = new TextEncoder().encode(text);
    const stream = () => new Blob([bytes.slice(0, 20), bytes.slice(20, 21), bytes.slice(21)]).stream();
    expect(await countLines(stream(), all)).toBe(3);
    expect(await countLines(stream(), { ...all, groups: [2] })).toBe(2);
    expect(await countLines(stream(), { ...all, groups: [1], includeExcluded: true })).toBe(2);
  });
});
