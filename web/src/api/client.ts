/** Typed requests to the service. Errors are ApiError; 401 opens the key dialog. */
import createClient from "openapi-fetch";
import { offline, toError } from "./errors";
import { apiKey, authorization } from "./key.svelte";
import type { paths } from "./schema";

/** fetch with the key; throws ApiError. */
export async function request(input: RequestInfo | URL, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(input instanceof Request ? input.headers : init.headers);
  for (const [name, value] of Object.entries(authorization())) headers.set(name, value);
  let response: Response;
  try {
    response = await fetch(input, { ...init, headers });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    connection.change(true);
    throw offline();
  }
  connection.change(false);
  if (response.ok || response.status === 304) return response;
  if (response.status === 401) apiKey.needed = true;
  throw await toError(response);
}

/** Whether the last request reached the service; the shell shows a banner if not. */
class Connection {
  lost = false;
  private listeners = new Set<(lost: boolean) => void>();

  watch(listener: (lost: boolean) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  change(lost: boolean): void {
    if (lost === this.lost) return;
    this.lost = lost;
    for (const listener of this.listeners) listener(lost);
  }
}

export const connection = new Connection();

export const api = createClient<paths>({ baseUrl: location.origin, fetch: (input) => request(input) });

/** The data of a successful answer: `await ok(api.GET(...))`. */
export async function ok<T>(answer: Promise<{ data?: T }>): Promise<T> {
  return (await answer).data as T;
}

interface Page<T> {
  data: T[];
  next_cursor?: string | null;
}

/** All rows of a list, page by page. */
export async function all<T>(read: (cursor: string | undefined) => Promise<Page<T>>): Promise<T[]> {
  const rows: T[] = [];
  let cursor: string | undefined;
  do {
    const page = await read(cursor);
    rows.push(...page.data);
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  return rows;
}
