/** Deletes photos of a dataset, with a way back. */
import { count } from "../lib/format";
import { randomId } from "../lib/ids";
import { deletions } from "./deletions.svelte";

const MAX_IDS = 10_000; // of one request

interface Steps {
  undone?: (key: string) => void;
  done?: (key: string) => void;
}

/** Returns the key of the deletion; `deletions.send(key)` sends it at once. */
export function deletePhotos(datasetId: string, ids: string[], { undone, done }: Steps): string {
  const key = `photos-${randomId()}`;
  const path = `/v1/datasets/${encodeURIComponent(datasetId)}/images:delete`;
  const parts = Array.from({ length: Math.ceil(ids.length / MAX_IDS) }, (_, part) => ids.slice(part * MAX_IDS, (part + 1) * MAX_IDS));
  deletions.add({
    id: key,
    said: `Deleted ${count(ids.length, "photo")}`,
    calls: parts.map((image_ids) => ({ path, method: "POST", body: JSON.stringify({ image_ids }) })),
    undone: () => undone?.(key),
    failed: () => undone?.(key),
    done: () => done?.(key),
  });
  return key;
}
