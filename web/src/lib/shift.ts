/** The place of the nth item that is left after the items at the places `gone` (in order) left. */
export function shifted(index: number, gone: readonly number[]): number {
  let place = index;
  for (const left of gone) {
    if (left > place) break;
    place += 1;
  }
  return place;
}
