/** The wall in sections: each has the groups that a coarser view puts together. */
import type { Cluster, ClusterGroup } from "../api/types";
import { preferred } from "./groupOrder";

const FEWEST = 4; // groups for which a coarser view is offered
const MOST = 1000; // that the service joins

export interface Section {
  label: string | null; // null: no heading
  clusters: Cluster[]; // that are shown, in order
  joined: boolean; // whether the view puts them together
}

export const hasCoarserViews = (filled: number): boolean => filled >= FEWEST && filled <= MOST;

/** The number of sections; null if there is none to choose, or if it is that of the groups. */
export function levelOf(wanted: number | null, filled: number): number | null {
  return wanted !== null && hasCoarserViews(filled) && wanted >= 2 && wanted < filled ? wanted : null;
}

/** The shown groups in sections: the largest section first if the wall is sorted by size, otherwise
 * in the order of their first cards. Groups that the view does not know are last. */
export function sectionsOf(shown: readonly Cluster[], byId: ReadonlyMap<number, Cluster>, groups: readonly ClusterGroup[], largestFirst: boolean): Section[] {
  const groupOf = new Map(groups.flatMap((group) => group.cluster_ids.map((id) => [id, group] as const)));
  const cards = new Map<ClusterGroup, Cluster[]>();
  const others: Cluster[] = [];
  for (const cluster of shown) {
    const group = groupOf.get(cluster.cluster_id);
    if (!group) others.push(cluster);
    else cards.set(group, [...(cards.get(group) ?? []), cluster]);
  }
  const sections = [...cards].map(([group, clusters]) => {
    const members = group.cluster_ids.flatMap((id) => byId.get(id) ?? []); // some may be merged by now
    return { label: preferred(members)?.label ?? "", clusters, joined: true, size: photosOf(members) };
  });
  if (largestFirst) sections.sort((a, b) => b.size - a.size);
  return others.length ? [...sections, { label: "Other groups", clusters: others, joined: false }] : sections;
}

export const photosOf = (clusters: readonly Cluster[]): number => clusters.reduce((sum, cluster) => sum + cluster.size, 0);

/** A line of the wall: a heading, or the cards from `start` to before `end`. */
export interface Line {
  heading: Section | null;
  start: number;
  end: number;
}

export function linesOf(sections: readonly Section[], columns: number): Line[] {
  const lines: Line[] = [];
  let start = 0;
  for (const section of sections) {
    if (section.label !== null) lines.push({ heading: section, start, end: start });
    const last = start + section.clusters.length;
    for (; start < last; start = Math.min(start + columns, last)) lines.push({ heading: null, start, end: Math.min(start + columns, last) });
  }
  return lines;
}

/** The line that has a card. */
export const lineOf = (lines: readonly Line[], index: number): number => Math.max(0, lines.findIndex((line) => index < line.end));

/** The card so many lines below (or above) another, in the same column if there is one. */
export function stepLines(lines: readonly Line[], index: number, by: number): number {
  const cards = lines.filter((line) => !line.heading);
  const from = lineOf(cards, index);
  const to = cards[Math.max(0, Math.min(cards.length - 1, from + by))];
  return to ? Math.min(to.start + index - (cards[from]?.start ?? 0), to.end - 1) : index;
}
