import { expect, test } from "vitest";
import { fingerprint, isArchive, pick, suggestedName, type PickedFile } from "./files";

const picked = (path: string, content = "x", lastModified = 1): PickedFile => ({
  path,
  file: new File([content], path.split("/").at(-1) ?? path, { lastModified }),
});

test("one archive is sent as it is", () => {
  const found = pick([picked("holiday.tar.gz")]);
  expect(found).toMatchObject({ name: "holiday", files: 0, bytes: 1 });
});

test("photos become a tar; videos and files of the system stay", async () => {
  const found = pick([picked("trip/b.jpg"), picked("trip/a.jpg"), picked("trip/film.MOV"), picked("trip/.DS_Store")]);
  expect(found).toMatchObject({ name: "trip", files: 2, left: 1 });
  expect((await found.blob.text()).startsWith("trip/a.jpg")).toBe(true);
});

test("an archive with others, or nothing, is refused in words", () => {
  expect(() => pick([picked("a.zip"), picked("b.jpg")])).toThrow("one archive alone");
  expect(() => pick([picked("film.mp4")])).toThrow("no photos");
  expect(() => pick([])).toThrow("no photos");
});

test("an archive inside a folder does not count as one", () => {
  expect(pick([picked("trip/a.jpg"), picked("trip/old.zip")]).files).toBe(2);
  expect(isArchive("photo.jpg")).toBe(false);
});

test("names are suggested from the common folder", () => {
  expect(suggestedName(["trip/a.jpg", "trip/day 2/b.jpg"])).toBe("trip");
  expect(suggestedName(["a.jpg", "trip/b.jpg"])).toMatch(/^Photos of/);
});

test("the fingerprint depends on paths, sizes and times", () => {
  const base = fingerprint([picked("a.jpg")]);
  expect(fingerprint([picked("a.jpg")])).toBe(base);
  expect(fingerprint([picked("b.jpg")])).not.toBe(base);
  expect(fingerprint([picked("a.jpg", "xy")])).not.toBe(base);
  expect(fingerprint([picked("a.jpg", "x", 2)])).not.toBe(base);
});
