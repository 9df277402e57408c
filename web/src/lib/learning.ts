/** What a clustering has learned from the answers about an earlier one: `metrics.learning`. */
import { count } from "./format";

export interface Learning {
  clustering_id: string;
  revision: number;
  confirmed: number;
  moved: number;
  excluded: number;
  refused: number;
  merges: number;
  splits: number;
}

export function readLearning(metrics: Record<string, unknown> | undefined): Learning | null {
  return (metrics?.learning as Learning | undefined) ?? null;
}

const PHOTOS = [
  ["confirmed", "confirmed"],
  ["moved", "moved to another group"],
  ["excluded", "excluded"],
  ["refused", "in the wrong group"],
] as const;

/** One text for each kind of answer that was given. */
export function learnedTexts(learning: Learning): string[] {
  const photos = PHOTOS.filter(([name]) => learning[name]).map(([name, text]) => `${count(learning[name], "photo")} ${text}`);
  if (learning.merges) photos.push(count(learning.merges, "merge"));
  if (learning.splits) photos.push(count(learning.splits, "split"));
  return photos;
}
