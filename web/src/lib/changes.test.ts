import { expect, test } from "vitest";
import type { Changes, GroupChange } from "../api/types";
import { byImportance, countStatuses, describeChange, describeDecision, toSend } from "./changes";

const group = (cluster_id: number, more: Partial<GroupChange> = {}): GroupChange => ({
  cluster_id, label: `g${cluster_id}`, named: true, size: 10, status: "kept", suggested: "approve", into: [], merged_with: [],
  stayed: 10, left: 0, came: 0, added: 0, by_hand: 0, ...more,
});
const part = (cluster_id: number, share: number) => ({ cluster_id, label: "", images: 1, share });
const changes = (groups: GroupChange[]): Changes => ({ clustering_id: "b", revision: 1, since: "a", since_revision: 1, images: 1, added: 0, missing: 0, groups, appeared: [] });

test("groups that end come first, unchanged ones last", () => {
  const groups = [group(0), group(1, { left: 3 }), group(2, { status: "split" }), group(3, { status: "vanished", named: false }), group(4, { status: "vanished" })];
  expect(byImportance(groups).map(({ cluster_id }) => cluster_id)).toEqual([4, 3, 2, 1, 0]);
  expect(countStatuses(groups)).toEqual([["vanished", 2], ["split", 1], ["kept", 2]]);
});

test("changes and decisions in words", () => {
  const split = group(0, { status: "split", into: [part(0, 0.6), part(1, 0.4)] });
  const merged = group(1, { status: "merged", merged_with: [0], left: 2, stayed: 8 });
  const all = changes([split, merged]);
  expect(describeChange(split, all)).toBe("Split into 2: 60 % and 40 % of it.");
  expect(describeChange(merged, all)).toBe("Merged with “g0”.");
  expect(describeChange(group(2, { left: 1, came: 2 }), all)).toBe("Kept: 1 photo left, 2 photos came.");
  expect(describeDecision(merged, "reject")).toBe("Keeps its 10 photos.");
  expect(describeDecision(group(3, { status: "vanished" }), "approve")).toBe("The group and its name end.");
});

test("only other decisions than the suggested ones are sent", () => {
  const groups = [group(0), group(1, { suggested: "reject" }), group(2)];
  expect(toSend(groups, new Map([[0, "approve"], [1, "approve"], [2, "reject"]]))).toEqual([
    { cluster_id: 1, decision: "approve" },
    { cluster_id: 2, decision: "reject" },
  ]);
});
