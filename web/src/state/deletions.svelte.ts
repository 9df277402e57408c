/** Deletions that can still be undone: the request is sent when the message has gone, or when the
 * page is left. What could not be sent then is sent by the next visit. */
import { SvelteSet } from "svelte/reactivity";
import { request } from "../api/client";
import { ApiError, describe } from "../api/errors";
import { toasts } from "./toasts.svelte";

const UNDO_MS = 12_000; // as long as a message with an action is shown
const STORED = "temi-deletions";
const KEEPALIVE_BYTES = 60_000; // a browser sends no more than 64 KiB when a page is left

interface Call {
  path: string;
  method: "DELETE" | "POST";
  body?: string;
  headers?: Record<string, string>;
}

export interface Deletion {
  id: string; // of what is deleted: it is hidden while it waits
  said: string; // "Deleted 3 photos"
  calls: Call[];
  undone?: () => void;
  done?: () => void;
  failed?: () => void;
}

interface Waiting extends Deletion {
  toast: number;
  timer: ReturnType<typeof setTimeout>;
}

class Deletions {
  /** Ids of what is deleted, also after the service has confirmed it. */
  readonly hidden = new SvelteSet<string>();
  private waiting: Waiting[] = [];

  constructor() {
    void this.sendLeft();
    window.addEventListener("pagehide", () => this.leave());
  }

  add(deletion: Deletion): void {
    this.hidden.add(deletion.id);
    const action = { label: "Undo", run: () => this.undo(deletion.id) };
    const toast = toasts.add(deletion.said, { action });
    const timer = setTimeout(() => void this.send(deletion.id), UNDO_MS);
    this.waiting.push({ ...deletion, toast, timer });
    this.store();
  }

  /** Sends one at once: the person goes on with something that depends on it. */
  async send(id: string): Promise<void> {
    const deletion = this.take(id);
    if (!deletion) return;
    try {
      for (const call of deletion.calls) await send(call);
      deletion.done?.();
    } catch (error) {
      this.hidden.delete(id);
      toasts.error(`Not deleted: ${describe(error)}`);
      deletion.failed?.();
    } finally {
      this.store();
    }
  }

  async flush(): Promise<void> {
    for (const { id } of [...this.waiting]) await this.send(id);
  }

  private undo(id: string): void {
    const deletion = this.take(id);
    this.hidden.delete(id);
    this.store();
    deletion?.undone?.();
  }

  private take(id: string): Waiting | undefined {
    const deletion = this.waiting.find((one) => one.id === id);
    if (!deletion) return undefined;
    clearTimeout(deletion.timer);
    toasts.remove(deletion.toast);
    this.waiting = this.waiting.filter((one) => one !== deletion);
    return deletion;
  }

  private leave(): void {
    let room = KEEPALIVE_BYTES;
    for (const call of this.waiting.flatMap((deletion) => deletion.calls)) {
      room -= call.body?.length ?? 0;
      if (room > 0) void send(call, true).catch(() => undefined);
    }
  }

  private store(): void {
    const calls = this.waiting.flatMap((deletion) => deletion.calls);
    if (calls.length) localStorage.setItem(STORED, JSON.stringify(calls));
    else localStorage.removeItem(STORED);
  }

  /** Sends what an earlier visit left. It may have arrived already: then it is not found. */
  private async sendLeft(): Promise<void> {
    try {
      const calls = JSON.parse(localStorage.getItem(STORED) ?? "[]") as Call[];
      localStorage.removeItem(STORED);
      for (const call of calls) await send(call);
    } catch (error) {
      if (error instanceof ApiError && error.status !== 404) toasts.error(`Not deleted: ${describe(error)}`);
    }
  }
}

async function send(call: Call, keepalive = false): Promise<void> {
  const headers = { ...(call.body ? { "Content-Type": "application/json" } : {}), ...call.headers };
  try {
    await request(call.path, { method: call.method, headers, body: call.body, keepalive });
  } catch (error) {
    // Another person, or the service itself, was faster.
    if (!(error instanceof ApiError && error.status === 404 && call.method === "DELETE")) throw error;
  }
}

export const deletions = new Deletions();
