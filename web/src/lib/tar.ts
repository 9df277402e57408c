/** One uncompressed tar from many files, so that a single resumable upload carries thousands.
 *
 * The Blob only refers to the files: the browser reads each one when its bytes are sent. The same
 * files give the same bytes, so that an upload can go on after a reload.
 */
export interface PathFile {
  path: string;
  file: Blob & { lastModified?: number };
}

const BLOCK = 512;
const MAX_NAME = 100; // bytes, in the classic header
const MAX_SIZE = 0o77777777777;
const encoder = new TextEncoder();

export function makeTar(files: PathFile[]): Blob {
  const parts: BlobPart[] = [];
  for (const { path, file } of inOrder(files)) {
    parts.push(header(path, file), file);
    const padding = (BLOCK - (file.size % BLOCK)) % BLOCK;
    if (padding) parts.push(new Uint8Array(padding));
  }
  parts.push(new Uint8Array(2 * BLOCK));
  return new Blob(parts, { type: "application/x-tar" });
}

/** By path, without the locale: every browser must give the same order. */
export function inOrder<T extends PathFile>(files: T[]): T[] {
  return [...files].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0));
}

function header(path: string, file: PathFile["file"]): Uint8Array<ArrayBuffer> {
  const name = encoder.encode(path);
  const modified = Math.max(0, Math.floor((file.lastModified ?? 0) / 1000));
  const records: [string, string][] = [];
  if (name.length > MAX_NAME) records.push(["path", path]);
  if (file.size > MAX_SIZE) records.push(["size", String(file.size)]);
  const main = block(name, Math.min(file.size, MAX_SIZE), modified, "0");
  if (!records.length) return main;
  const content = joined(records.map(([key, value]) => paxRecord(key, value)));
  const padding = new Uint8Array((BLOCK - (content.length % BLOCK)) % BLOCK);
  return joined([block(encoder.encode("pax"), content.length, modified, "x"), content, padding, main]);
}

function block(name: Uint8Array, size: number, modified: number, type: string): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(BLOCK);
  const put = (at: number, text: string): void => bytes.set(encoder.encode(text), at);
  bytes.set(name.subarray(0, MAX_NAME), 0);
  put(100, "0000644\0");
  put(108, "0000000\0");
  put(116, "0000000\0");
  put(124, `${size.toString(8).padStart(11, "0")}\0`);
  put(136, `${modified.toString(8).padStart(11, "0")}\0`);
  put(148, " ".repeat(8)); // the checksum counts its own field as spaces
  put(156, type);
  put(257, "ustar\x0000");
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return bytes;
}

/** `length key=value\n`, where the length counts its own digits. */
export function paxRecord(key: string, value: string): Uint8Array<ArrayBuffer> {
  const rest = encoder.encode(` ${key}=${value}\n`).length;
  let length = rest + String(rest).length;
  if (rest + String(length).length !== length) length = rest + String(length).length;
  return encoder.encode(`${length} ${key}=${value}\n`);
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
