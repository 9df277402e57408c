/** One resumable upload (tus). It pauses, goes on after a lost network, and says rate and time left. */
import { DetailedError, Upload } from "tus-js-client";
import { apiKey, authorization } from "../api/key.svelte";
import type { Problem } from "../api/types";
import { Rate } from "../lib/rate";

const CHUNK = 32 * 1024 * 1024; // what is sent again at most if the service is killed
const WAITS = [1, 2, 5, 10, 15]; // seconds between two tries
const TRIES_WHILE_REACHABLE = 5;

export type TransferStatus = "sending" | "paused" | "waiting" | "sent" | "failed";

export class Transfer {
  status: TransferStatus = $state("sending");
  sent = $state(0);
  rate: number | null = $state(null); // bytes per second
  secondsLeft: number | null = $state(null);
  error = $state("");
  readonly total: number;

  private upload: Upload;
  private speed = new Rate();
  private tries = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    blob: Blob,
    fingerprint: string,
    private onSent: (uploadId: string) => void,
    private onProgress: (url: string | null, sent: number) => void,
  ) {
    this.total = blob.size;
    this.upload = new Upload(blob, {
      endpoint: `${location.origin}/v1/uploads`,
      chunkSize: CHUNK,
      retryDelays: null, // tus gives up while the browser is offline; this class does not
      fingerprint: () => Promise.resolve(fingerprint),
      removeFingerprintOnSuccess: true,
      onBeforeRequest: (request) => {
        for (const [name, value] of Object.entries(authorization())) request.setHeader(name, value);
      },
      onProgress: (sent) => this.progress(sent),
      onSuccess: () => this.finished(),
      onError: (error) => this.failed(error),
    });
    window.addEventListener("online", this.online);
  }

  /** Goes on where an earlier upload of the same files stopped, if there is one. */
  async start(): Promise<void> {
    const [earlier] = (await this.upload.findPreviousUploads()).reverse();
    if (earlier) this.upload.resumeFromPreviousUpload(earlier);
    this.send();
  }

  pause(): void {
    clearTimeout(this.timer);
    this.status = "paused";
    this.rate = this.secondsLeft = null;
    void this.upload.abort();
  }

  resume(): void {
    this.tries = 0;
    this.send();
  }

  /** The address of the upload, once the service has given one. */
  get url(): string | null {
    return this.upload.url;
  }

  close(): void {
    clearTimeout(this.timer);
    window.removeEventListener("online", this.online);
  }

  private online = (): void => {
    if (this.status === "waiting") this.send();
  };

  private send(): void {
    clearTimeout(this.timer);
    this.speed.reset();
    this.status = "sending";
    this.error = "";
    this.upload.start();
  }

  private progress(sent: number): void {
    if (sent > this.sent) this.tries = 0;
    this.sent = sent;
    this.speed.add(sent);
    this.rate = this.speed.perSecond();
    this.secondsLeft = this.speed.secondsLeft(this.total);
    this.onProgress(this.upload.url, sent);
  }

  private finished(): void {
    this.close();
    this.status = "sent";
    this.sent = this.total;
    this.onSent(this.upload.url?.split("/").at(-1) ?? "");
  }

  private failed(error: Error | DetailedError): void {
    if (this.status === "paused") return;
    const response = error instanceof DetailedError ? error.originalResponse : null;
    const status = response?.getStatus() ?? 0;
    if (status === 401) apiKey.needed = true;
    // 409 and 423: the service still writes what an earlier connection sent.
    if (status === 0 || status === 409 || status === 423 || status === 429 || status >= 500) void this.retry(status);
    else this.stop(detail(response?.getBody()) ?? `The service answered with status ${status}.`);
  }

  private async retry(status: number): Promise<void> {
    this.status = "waiting";
    this.rate = this.secondsLeft = null;
    this.tries += 1;
    if (status === 0 && this.tries > TRIES_WHILE_REACHABLE && (await isReachable())) {
      this.stop("The browser could not read the files. They may have been changed, moved or deleted: choose them again.");
      return;
    }
    const wait = WAITS[Math.min(this.tries, WAITS.length) - 1] ?? 1;
    this.timer = setTimeout(() => this.send(), wait * 1000);
  }

  private stop(error: string): void {
    this.close();
    this.status = "failed";
    this.error = error;
  }
}

async function isReachable(): Promise<boolean> {
  try {
    return (await fetch("/readyz", { cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

function detail(body: string | undefined): string | null {
  try {
    return (JSON.parse(body ?? "") as Partial<Problem>).detail ?? null;
  } catch {
    return null;
  }
}
