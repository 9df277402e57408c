/** Places in a list from which rows are removed for good. */

/** Where rows stand after others, in rising order, were removed; removed ones are left out. */
export function afterRemoval(places: readonly number[], removed: readonly number[]): number[] {
  const gone = new Set(removed);
  return places.filter((place) => !gone.has(place)).map((place) => place - countBelow(place, removed));
}

function countBelow(place: number, sorted: readonly number[]): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < place) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const ascending = (numbers: Iterable<number>): number[] => [...new Set(numbers)].sort((a, b) => a - b);
