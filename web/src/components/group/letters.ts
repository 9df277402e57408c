/** The letters that groups have had since the page was opened: a hand that knows them is fast. */
const byClustering = new Map<string, Map<number, string>>();

export function letters(clusteringId: string): Map<number, string> {
  let known = byClustering.get(clusteringId);
  if (!known) byClustering.set(clusteringId, (known = new Map()));
  return known;
}
