/** What a person started with an upload: the dataset, then its groups. Kept in the browser's
 * storage until it is done, so that a reload or a restart loses nothing. */
export interface Plan {
  id: string; // also the Idempotency-Key of its requests
  tab: string; // that sends the upload
  name: string; // of the dataset
  datasetId: string | null; // null until a new one exists
  adds: boolean; // photos for a dataset that exists
  groups: number | "auto" | null; // auto: the service finds it; null: only upload
  labels: "none" | "folder" | "manifest";
  fingerprint: string;
  files: number;
  bytes: number;
  sent: number;
  stage: "sending" | "sent" | "reading";
  uploadId: string | null;
  uploadUrl: string | null;
  jobId: string | null; // that reads the photos
  seenAt: number; // when its tab was last alive
}

const STORED = "temi-plans";
const ALIVE_MS = 10_000;

export function loadPlans(storage: Storage = localStorage): Plan[] {
  try {
    const plans: unknown = JSON.parse(storage.getItem(STORED) ?? "[]");
    return Array.isArray(plans) ? (plans as Plan[]) : [];
  } catch {
    return [];
  }
}

export function savePlan(plan: Plan, storage: Storage = localStorage): void {
  write([...loadPlans(storage).filter((other) => other.id !== plan.id), plan], storage);
}

export function removePlan(id: string, storage: Storage = localStorage): void {
  write(loadPlans(storage).filter((plan) => plan.id !== id), storage);
}

function write(plans: Plan[], storage: Storage): void {
  if (plans.length) storage.setItem(STORED, JSON.stringify(plans));
  else storage.removeItem(STORED);
}

/** Whether another tab is sending it at this moment. */
export function isElsewhere(plan: Plan, tab: string, now = Date.now()): boolean {
  return plan.stage === "sending" && plan.tab !== tab && now - plan.seenAt < ALIVE_MS;
}
