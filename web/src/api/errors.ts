/** What the service answers if a request fails, or that it does not answer at all. */
import type { Problem } from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number, // 0: no answer
    readonly problem: Partial<Problem>,
    readonly retryAfter: number | null = null,
  ) {
    super(problem.detail ?? problem.title ?? `The service answered with status ${status}.`);
  }

  get code(): string {
    return this.problem.code ?? "";
  }

  /** The request may succeed later without a change: no network, a restart, a full queue. */
  get temporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 502;
  }

  get requestId(): string | null {
    return this.problem.request_id ?? null;
  }
}

export function offline(): ApiError {
  return new ApiError(0, { detail: "The service does not answer. Trying again …" });
}

export async function toError(response: Response): Promise<ApiError> {
  let problem: Partial<Problem> = {};
  try {
    problem = (await response.json()) as Partial<Problem>;
  } catch {
    // A proxy answered in its own words.
  }
  const after = Number(response.headers.get("Retry-After"));
  return new ApiError(response.status, problem, Number.isFinite(after) && after > 0 ? after : null);
}

/** The text for a person: what is wrong, with the fields. */
export function describe(error: unknown): string {
  if (!(error instanceof ApiError)) return error instanceof Error ? error.message : String(error);
  if (error.status === 401) return "This service needs a valid API key. Give one in the dialog or in the settings.";
  const fields = (error.problem.errors ?? []).map((entry) => `${entry.field}: ${entry.message}`);
  return [error.message, ...fields].join(" ");
}
