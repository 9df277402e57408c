/** Saves a file of the service on the person's computer. */
import { request } from "../api/client";
import { apiKey } from "../api/key.svelte";

/** Without a key the browser downloads by itself. With one, the file is fetched with the key; `onprogress`
 * gets the bytes so far. */
export async function download(path: string, filename: string, onprogress: (bytes: number) => void = () => undefined): Promise<void> {
  if (!apiKey.value) return save(path, filename);
  const response = await request(path);
  let read = 0;
  const counted = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      read += chunk.byteLength;
      onprogress(read);
      controller.enqueue(chunk);
    },
  });
  const blob = await new Response(response.body?.pipeThrough(counted)).blob();
  const address = URL.createObjectURL(blob);
  save(address, filename);
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function save(address: string, filename: string): void {
  const link = document.createElement("a");
  link.href = address;
  link.download = filename;
  document.body.append(link);
  link.click();
  link.remove();
}
