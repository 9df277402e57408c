/** Finds names as a person types them: the whole name first, then at its start, at the start of a word, and inside. */
const fold = (text: string): string => text.normalize("NFKD").replace(/\p{M}/gu, "").toLocaleLowerCase();

export interface Named {
  label: string;
}

export function bestMatches<T extends Named>(entries: readonly T[], typed: string, limit = 8): T[] {
  const wanted = fold(typed.trim());
  if (!wanted) return entries.slice(0, limit);
  const ranked: { entry: T; rank: number }[] = [];
  for (const entry of entries) {
    const name = fold(entry.label.trim());
    const at = name.indexOf(wanted);
    if (at >= 0) ranked.push({ entry, rank: name === wanted ? 0 : at === 0 ? 1 : /[\s_\-/.(]/.test(name[at - 1] ?? "") ? 2 : 3 });
  }
  return ranked.sort((a, b) => a.rank - b.rank).slice(0, limit).map(({ entry }) => entry);
}

/** Whether two names are the same for a person: spaces at the ends and case do not count. */
export const sameName = (one: string, other: string): boolean => fold(one.trim()) === fold(other.trim());
