import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { makeTar, paxRecord, type PathFile } from "./tar";

const file = (path: string, content: string, lastModified = 1_700_000_000_000): PathFile => ({
  path,
  file: Object.assign(new Blob([content]), { lastModified }),
});

async function unpacked(files: PathFile[]): Promise<Map<string, string>> {
  const folder = mkdtempSync(join(tmpdir(), "tar-"));
  const tar = join(folder, "a.tar");
  writeFileSync(tar, new Uint8Array(await makeTar(files).arrayBuffer()));
  execFileSync("tar", ["xf", tar, "-C", folder]);
  return new Map(files.map(({ path }) => [path, readFileSync(join(folder, path), "utf8")]));
}

test("a system's tar reads what was written", async () => {
  const files = [file("b/one.jpg", "x".repeat(512)), file("a.jpg", "hello"), file("empty.png", "")];
  expect(await unpacked(files)).toEqual(new Map([["b/one.jpg", "x".repeat(512)], ["a.jpg", "hello"], ["empty.png", ""]]));
});

test("long names, and names in other scripts, are kept", async () => {
  const long = `${"folder-with-a-long-name/".repeat(6)}photo.jpg`;
  const files = [file(long, "1"), file("صور/قطة.jpg", "2"), file("写真/".repeat(9) + "犬.jpg", "3")];
  const found = await unpacked(files);
  expect([...found.values()]).toEqual(["1", "2", "3"]);
});

test("the same files give the same bytes in any order", async () => {
  const files = [file("a.jpg", "1"), file("b.jpg", "2"), file("B.jpg", "3")];
  const bytes = await makeTar(files).text();
  expect(await makeTar([...files].reverse()).text()).toBe(bytes);
  expect(bytes.length % 512).toBe(0);
});

test("the length of a pax record counts its own digits", () => {
  for (let size = 1; size < 1100; size += 1) {
    const record = paxRecord("path", "x".repeat(size));
    expect(Number.parseInt(new TextDecoder().decode(record), 10)).toBe(record.length);
  }
});
