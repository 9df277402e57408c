/** Photos that are like a photo or a text, and names that fit a group. */
import { api, ok, request } from "./client";
import type { FoundImage, ModelVersion, NameSuggestion, SearchResults } from "./types";

export const MOST_FOUND = 200;

/** What to look for: a photo of the service, a file, or words. */
export type Wanted = { image_id: string } | { file: File } | { text: string };

export async function searchPhotos(datasetId: string, clusteringId: string, wanted: Wanted, signal?: AbortSignal): Promise<FoundImage[]> {
  const query = new URLSearchParams({ clustering_id: clusteringId, limit: String(MOST_FOUND) });
  const path = `/v1/datasets/${encodeURIComponent(datasetId)}:search?${query}`;
  const response = await request(path, { method: "POST", signal, ...body(wanted) });
  return ((await response.json()) as SearchResults).data;
}

function body(wanted: Wanted): RequestInit {
  if (!("file" in wanted)) return { headers: { "Content-Type": "application/json" }, body: JSON.stringify(wanted) };
  const form = new FormData();
  form.append("files", wanted.file, wanted.file.name);
  return { body: form };
}

/** The version whose backbone gave the features: it says whether words can be looked for. */
export function readVersion(model: { name: string; version: number }): Promise<ModelVersion> {
  const path = { name: model.name, version: model.version };
  return ok(api.GET("/v1/models/{name}/versions/{version}", { params: { path } }));
}

export async function suggestedNames(clusteringId: string, clusterId: number): Promise<NameSuggestion[]> {
  const path = { clustering_id: clusteringId };
  const query = { cluster_id: [clusterId] };
  const found = await ok(api.GET("/v1/clusterings/{clustering_id}/name-suggestions", { params: { path, query } }));
  return found.data[0]?.suggestions ?? [];
}
