/** The files that a person drops or chooses, with their paths. */
import { inOrder, makeTar, type PathFile } from "./tar";

export interface PickedFile extends PathFile {
  file: File;
}

/** What one upload carries, and what is said about it before it starts. */
export interface Picked {
  name: string; // suggested for the dataset
  blob: Blob;
  files: number; // 0: an archive, its files are not known yet
  bytes: number;
  left: number; // videos and sound, which are not sent
  fingerprint: string;
}

const ARCHIVE = /\.(zip|tar|tar\.(gz|xz|bz2|zst)|tgz|txz|tbz2?|tzst)$/i;
const NOT_SENT = /\.(mp4|mov|m4v|avi|mkv|webm|mts|3gp|mp3|m4a|wav|aac|flac|ogg)$/i;
const SYSTEM = /(^|\/)(\._[^/]*|\.DS_Store|Thumbs\.db|desktop\.ini|__MACOSX)(\/|$)/;

export const isArchive = (name: string): boolean => ARCHIVE.test(name);

/** Throws an Error with the text for the person if nothing can be sent. */
export function pick(found: PickedFile[]): Picked {
  const files = found.filter(({ path }) => !SYSTEM.test(path));
  const archives = files.filter(({ path }) => !path.includes("/") && isArchive(path));
  const only = files[0];
  if (only && files.length === 1 && archives.length) return pickArchive(only);
  if (archives.length) throw new Error("Drop one archive alone, or photos and folders without archives.");
  const sent = inOrder(files.filter(({ path }) => !NOT_SENT.test(path)));
  if (!sent.length) throw new Error("There are no photos in what you dropped. Choose a folder with photos, photos, or a zip or tar archive.");
  const blob = makeTar(sent);
  return {
    name: suggestedName(sent.map(({ path }) => path)),
    blob,
    files: sent.length,
    bytes: blob.size,
    left: files.length - sent.length,
    fingerprint: fingerprint(sent),
  };
}

function pickArchive(picked: PickedFile): Picked {
  const { file } = picked;
  const name = file.name.replace(ARCHIVE, "");
  return { name, blob: file, files: 0, bytes: file.size, left: 0, fingerprint: fingerprint([picked]) };
}

/** The folder that all files are in; without one, the day. */
export function suggestedName(paths: string[]): string {
  const top = new Set(paths.map((path) => (path.includes("/") ? path.split("/", 1)[0] : "")));
  const [folder] = top;
  if (top.size === 1 && folder) return folder;
  return `Photos of ${new Date().toLocaleDateString(undefined, { dateStyle: "medium" })}`;
}

/** The same for the same files: paths, sizes and times, not the content, which may be terabytes. */
export function fingerprint(files: PickedFile[]): string {
  const text = files.map(({ path, file }) => `${path}\0${file.size}\0${file.lastModified}`).join("\n");
  return `temi-${files.length}-${hash(text, 1)}${hash(text, 2)}`;
}

/** 53 bits of a text (cyrb53). crypto.subtle is missing on pages without https. */
function hash(text: string, seed: number): string {
  let a = 0xdeadbeef ^ seed;
  let b = 0x41c6ce57 ^ seed;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    a = Math.imul(a ^ code, 2654435761);
    b = Math.imul(b ^ code, 1597334677);
  }
  a = Math.imul(a ^ (a >>> 16), 2246822507) ^ Math.imul(b ^ (b >>> 13), 3266489909);
  b = Math.imul(b ^ (b >>> 16), 2246822507) ^ Math.imul(a ^ (a >>> 13), 3266489909);
  return (4294967296 * (2097151 & b) + (a >>> 0)).toString(36);
}

export function fromInput(list: FileList): PickedFile[] {
  return [...list].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** Reads dropped folders to the last file. Call it in the drop event itself: afterwards the browser
 * has forgotten what was dropped. */
export async function fromDrop(transfer: DataTransfer): Promise<PickedFile[]> {
  const entries: FileSystemEntry[] = [];
  const files: PickedFile[] = [];
  for (const item of transfer.items) {
    const entry = item.kind === "file" ? item.webkitGetAsEntry() : null;
    const file = item.kind === "file" ? item.getAsFile() : null;
    if (entry?.isDirectory) entries.push(entry);
    else if (file) files.push({ path: file.name, file });
  }
  for (const entry of entries) await walk(entry, files);
  return files;
}

async function walk(entry: FileSystemEntry, files: PickedFile[]): Promise<void> {
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    files.push({ path: entry.fullPath.replace(/^\//, ""), file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // A browser returns at most a hundred entries at a time, and none at the end.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (!some.length) return;
    for (const child of some) await walk(child, files);
  }
}
