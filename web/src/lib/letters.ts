/** A letter per group: the first free one of its name, so that it can be remembered. */
const ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789";

export interface Lettered {
  cluster_id: number;
  label: string;
  named?: boolean; // false: a number says more than "cluster"
}

/** `known` has the letters of earlier; a group keeps its letter as long as the page lives. */
export function giveLetters(groups: readonly Lettered[], reserved: string, known: Map<number, string> = new Map()): Map<number, string> {
  const given = new Map<number, string>();
  const taken = new Set(reserved);
  for (const group of groups) {
    const letter = known.get(group.cluster_id);
    if (!letter || taken.has(letter)) continue;
    given.set(group.cluster_id, letter);
    taken.add(letter);
  }
  for (const group of groups) {
    if (given.has(group.cluster_id)) continue;
    const name = group.label.toLowerCase();
    const wanted = (group.named === false ? name.replace(/\D/g, "") : name) + ALPHABET;
    const letter = [...wanted].find((candidate) => ALPHABET.includes(candidate) && !taken.has(candidate));
    if (!letter) break;
    given.set(group.cluster_id, letter);
    taken.add(letter);
  }
  return given;
}
