/** Follows the events of a job. EventSource cannot send a key, so this reads the stream itself. */
import { ApiError } from "./errors";
import { request } from "./client";
import type { Job } from "./types";

const FINAL = new Set(["succeeded", "failed", "cancelled"]);

export const isOver = (job: Job): boolean => FINAL.has(job.status);

/** Calls `onJob` with every change until the job is over; reconnects by itself. Returns a stop. */
export function followJob(jobId: string, onJob: (job: Job) => void): () => void {
  const stopped = new AbortController();
  void (async () => {
    let lastId = "";
    while (!stopped.signal.aborted) {
      try {
        const headers: Record<string, string> = { Accept: "text/event-stream" };
        if (lastId) headers["Last-Event-ID"] = lastId;
        const response = await request(`/v1/jobs/${encodeURIComponent(jobId)}/events`, {
          headers,
          signal: stopped.signal,
        });
        if (response.status === 204) return; // it is over, and everything was sent
        for await (const event of parse(response)) {
          if (event.id) lastId = event.id;
          if (event.type !== "progress" && event.type !== "status") continue;
          const job = JSON.parse(event.data) as Job;
          onJob(job);
          if (isOver(job)) return;
        }
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (error instanceof ApiError && !error.temporary) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  })();
  return () => stopped.abort();
}

interface ServerEvent {
  id: string;
  type: string;
  data: string;
}

async function* parse(response: Response): AsyncGenerator<ServerEvent> {
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    buffer += value.replaceAll("\r\n", "\n");
    for (let end = buffer.indexOf("\n\n"); end >= 0; end = buffer.indexOf("\n\n")) {
      yield toEvent(buffer.slice(0, end));
      buffer = buffer.slice(end + 2);
    }
  }
}

export function toEvent(block: string): ServerEvent {
  const event: ServerEvent = { id: "", type: "message", data: "" };
  const data: string[] = [];
  for (const line of block.split("\n")) {
    const colon = line.indexOf(":");
    if (colon <= 0) continue;
    const field = line.slice(0, colon);
    const value = line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    else if (field === "event") event.type = value;
    else if (field === "id") event.id = value;
  }
  event.data = data.join("\n");
  return event;
}
