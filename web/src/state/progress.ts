/** How far the naming of a clustering's groups is. Empty groups do not count. */
import type { Cluster } from "../api/types";
import { integer } from "../lib/format";

export interface Progress {
  named: number;
  groups: number;
  photos: number; // share of the photos that are in named groups
}

export function progressOf(clusters: Cluster[]): Progress {
  let [named, groups, namedPhotos, photos] = [0, 0, 0, 0];
  for (const cluster of clusters) {
    if (!cluster.size) continue;
    groups += 1;
    photos += cluster.size;
    if (!cluster.named) continue;
    named += 1;
    namedPhotos += cluster.size;
  }
  return { named, groups, photos: photos ? namedPhotos / photos : 0 };
}

/** "31 of 42 named, 91 % of photos"; only a finished work shows 100 %. */
export function progressText({ named, groups, photos }: Progress): string {
  const share = named < groups ? Math.min(99, Math.round(100 * photos)) : 100;
  return `${integer(named)} of ${integer(groups)} named, ${groups ? share : 0} % of photos`;
}
