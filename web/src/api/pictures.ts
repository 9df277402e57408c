/** Addresses of thumbnails and photos, also if a key must be sent along. */
import { request } from "./client";
import { apiKey } from "./key.svelte";

export type ThumbnailSize = 64 | 128 | 256 | 512;

/** The smallest stored size that is sharp at this width. */
export function sizeFor(width: number): ThumbnailSize {
  const pixels = width * Math.min(2, globalThis.devicePixelRatio || 1);
  return pixels <= 64 ? 64 : pixels <= 128 ? 128 : pixels <= 256 ? 256 : 512;
}

export function thumbnailPath(imageId: string, size: ThumbnailSize): string {
  return `/v1/images/${encodeURIComponent(imageId)}/thumbnail?size=${size}`;
}

export function refusedThumbnailPath(refusedId: string, size: ThumbnailSize): string {
  return `/v1/refused-images/${encodeURIComponent(refusedId)}/thumbnail?size=${size}`;
}

export function contentPath(imageId: string): string {
  return `/v1/images/${encodeURIComponent(imageId)}/content`;
}

/** Shows the picture of a path in an <img>. With a key it is fetched with the key. */
export function picture(node: HTMLImageElement, path: string) {
  let loading: AbortController | null = null;
  let blobUrl = "";

  function release(): void {
    loading?.abort();
    if (blobUrl) URL.revokeObjectURL(blobUrl);
    blobUrl = "";
  }

  async function fetchWithKey(wanted: string): Promise<void> {
    loading = new AbortController();
    try {
      const response = await request(wanted, { signal: loading.signal });
      blobUrl = URL.createObjectURL(await response.blob());
      node.src = blobUrl;
    } catch {
      if (!loading.signal.aborted) node.dispatchEvent(new Event("error"));
    }
  }

  function show(wanted: string): void {
    release();
    if (apiKey.value) void fetchWithKey(wanted);
    else node.src = wanted;
  }

  show(path);
  return {
    update(next: string) {
      if (next === path) return;
      path = next;
      show(next);
    },
    destroy: release,
  };
}
