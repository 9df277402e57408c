/** Requests about groups that several pages need. */
import { api, ok, request } from "./client";
import type { Cursors } from "../state/photos.svelte";
import type { Hierarchy, Neighbor, Prediction, Predictions, RankedImage, SimilarCluster, SplitPreview } from "./types";

const clusterPath = (clusteringId: string, clusterId: number): string =>
  `/v1/clusterings/${encodeURIComponent(clusteringId)}/clusters/${clusterId}`;

async function read<T>(path: string, init: RequestInit = {}): Promise<T> {
  return (await (await request(path, init)).json()) as T;
}

/** Other groups, the most similar first. */
export async function similarGroups(clusteringId: string, clusterId: number, limit = 50): Promise<SimilarCluster[]> {
  const answer = await read<{ data: SimilarCluster[] }>(`${clusterPath(clusteringId, clusterId)}/similar?limit=${limit}`);
  return answer.data;
}

/** The groups of a clustering in fewer groups of similar ones. */
export function groupHierarchy(clusteringId: string, n_groups: number): Promise<Hierarchy> {
  return read(`/v1/clusterings/${encodeURIComponent(clusteringId)}/hierarchy?n_groups=${n_groups}`);
}

export function previewSplit(clusteringId: string, clusterId: number, parts: number, seed: number, signal?: AbortSignal): Promise<SplitPreview> {
  return read(`${clusterPath(clusteringId, clusterId)}:preview-split`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ parts, seed }),
    signal,
  });
}

export type PhotoSort = "representative" | "borderline" | "outlier" | "similar";
export interface PhotoOrder {
  sort: PhotoSort;
  similarTo: string | null; // with `similar`: the photo
}

function orderQuery(order: PhotoOrder): URLSearchParams {
  const query = new URLSearchParams({ sort: order.sort });
  if (order.sort === "similar" && order.similarTo) query.set("similar_to", order.similarTo);
  return query;
}

export function groupCursors(clusteringId: string, clusterId: number, order: PhotoOrder, every = 200): Promise<Cursors> {
  const query = orderQuery(order);
  query.set("every", String(every));
  return read(`${clusterPath(clusteringId, clusterId)}/images/cursors?${query}`);
}

export async function groupPhotos(clusteringId: string, clusterId: number, order: PhotoOrder, cursor: string | null, limit: number): Promise<RankedImage[]> {
  const query = orderQuery(order);
  query.set("limit", String(limit));
  if (cursor) query.set("cursor", cursor);
  return (await read<{ data: RankedImage[] }>(`${clusterPath(clusteringId, clusterId)}/images?${query}`)).data;
}

/** The probabilities of a photo by the model that made the clustering. */
export async function predictPhoto(model: { name: string; version: number }, imageId: string): Promise<Prediction | null> {
  const path = `/v1/models/${encodeURIComponent(model.name)}/versions/${model.version}:predict?top_k=5`;
  const answer = await read<Predictions>(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ image_ids: [imageId] }),
  });
  return answer.data[0] ?? null;
}

export function readPhoto(image_id: string) {
  return ok(api.GET("/v1/images/{image_id}", { params: { path: { image_id } } }));
}

/** How many photos of a group have at most this probability: a search in the sorted list. */
export async function countUpTo(clusteringId: string, clusterId: number, probability: number): Promise<number> {
  const order: PhotoOrder = { sort: "representative", similarTo: null };
  const { count, every, cursors } = await groupCursors(clusteringId, clusterId, order);
  if (!count) return 0;
  let [low, high] = [0, cursors.length - 1]; // the last page that begins above the probability
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    const [first] = await groupPhotos(clusteringId, clusterId, order, cursors[middle] ?? null, 1);
    if (first && first.probability > probability) low = middle;
    else high = middle - 1;
  }
  const rows = await groupPhotos(clusteringId, clusterId, order, cursors[low] ?? null, every);
  const above = rows.findIndex((row) => row.probability <= probability);
  return count - low * every - (above < 0 ? rows.length : above);
}

export async function photoNeighbors(imageId: string, limit = 24): Promise<Neighbor[]> {
  return (await read<{ data: Neighbor[] }>(`/v1/images/${encodeURIComponent(imageId)}/neighbors?limit=${limit}`)).data;
}
