/** Edits that wait for the service. They are kept in the browser's storage, so that a reload, a
 * restart of the service or a lost network loses none; the Idempotency-Key keeps one that was
 * answered into the void from being done twice. */
import type { OperationCreate } from "../api/types";

export interface Edit {
  key: string; // Idempotency-Key
  seen: number; // the revision that the person saw
  operation: OperationCreate;
  said: string; // what to say when it is done: "Moved 3 photos to Cats"
  source?: Source;
}

/** Where the photos of a move come from: the operation has only their ids. */
export interface Source {
  cluster_id: number;
  count: number;
}

/** The source of photos that are in no group. */
export const EXCLUDED = -1;

const stored = (clusteringId: string): string => `temi-edits-${clusteringId}`;

export function loadEdits(clusteringId: string, storage: Storage = localStorage): Edit[] {
  try {
    const edits: unknown = JSON.parse(storage.getItem(stored(clusteringId)) ?? "[]");
    return Array.isArray(edits) ? (edits as Edit[]) : [];
  } catch {
    return [];
  }
}

export function saveEdits(clusteringId: string, edits: Edit[], storage: Storage = localStorage): void {
  try {
    if (edits.length) storage.setItem(stored(clusteringId), JSON.stringify(edits));
    else storage.removeItem(stored(clusteringId));
  } catch {
    // A full storage must not stop the work: the edits are still sent from memory.
  }
}
