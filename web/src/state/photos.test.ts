import { describe, expect, it, vi } from "vitest";
import { PhotoList } from "./photos.svelte";

function list(count: number, every = 10) {
  const pages: number[] = [];
  let names = Array.from({ length: count }, (_, index) => `img_${index}`);
  const photos = new PhotoList(
    async () => ({ count: names.length, every, cursors: Array.from({ length: Math.ceil(names.length / every) }, (_, page) => String(page)) }),
    async (cursor, limit) => {
      const page = Number(cursor);
      pages.push(page);
      return names.slice(page * limit, (page + 1) * limit).map((image_id) => ({ image_id, name: image_id }));
    },
  );
  return { photos, pages, leave: (gone: string[]) => (names = names.filter((name) => !gone.includes(name))) };
}
const settled = () => new Promise((resolve) => setTimeout(resolve, 80));

describe("PhotoList", () => {
  it("reads a page when one of its photos is wanted, once", async () => {
    const { photos, pages } = list(95);
    await photos.load();
    expect(photos.count).toBe(95);
    expect(photos.at(42)).toBeUndefined();
    photos.at(43);
    await settled();
    expect(photos.at(42)?.image_id).toBe("img_42");
    expect(pages).toEqual([4]);
  });

  it("takes photos out at once, over the border of a page", async () => {
    const { photos } = list(30);
    await photos.load();
    await photos.range(0, 19);
    expect(photos.remove((photo) => ["img_3", "img_12"].includes(photo.image_id))).toBe(3);
    expect(photos.count).toBe(28);
    expect([2, 3, 10, 11].map((index) => photos.at(index)?.image_id)).toEqual(["img_2", "img_4", "img_11", "img_13"]);
    expect(photos.indexOf("img_13")).toBe(11);
  });

  it("shows the old photos until the new ones are read", async () => {
    const { photos, pages, leave } = list(30);
    await photos.load();
    await photos.range(0, 29);
    photos.remove((photo) => photo.image_id === "img_0");
    leave(["img_0"]);
    await photos.load();
    expect(photos.at(0)?.image_id).toBe("img_1");
    await settled();
    expect(photos.at(0)?.image_id).toBe("img_1");
    expect(photos.count).toBe(29);
    expect(pages).toEqual([0, 1, 2, 0]); // only the page in view again
  });

  it("shows the old photos while the list is read anew twice", async () => {
    const { photos } = list(30);
    await photos.load();
    await photos.range(0, 29);
    await photos.load();
    await photos.load();
    expect(photos.at(0)?.image_id).toBe("img_0");
  });

  it("gives a range that is asked for while the list is read anew", async () => {
    const { photos } = list(30);
    await photos.load();
    photos.at(0);
    await Promise.resolve();
    void photos.load();
    const found = photos.range(0, 1);
    void photos.load();
    expect((await found).map((photo) => photo.image_id)).toEqual(["img_0", "img_1"]);
  });

  it("gives ranges over pages", async () => {
    const { photos } = list(30);
    await photos.load();
    expect((await photos.range(8, 11)).map((photo) => photo.image_id)).toEqual(["img_8", "img_9", "img_10", "img_11"]);
  });

  it("gives all rows of a range over more pages than it keeps", async () => {
    const { photos } = list(1500);
    await photos.load();
    const found = await photos.range(3, 1402);
    expect(found).toHaveLength(1400);
    expect([found[0]?.image_id, found[1399]?.image_id]).toEqual(["img_3", "img_1402"]);
  });

  it("finds a photo whose page was not read", async () => {
    const { photos, pages } = list(300);
    await photos.load();
    expect(await photos.find("img_123")).toBe(123);
    expect(Math.max(...pages)).toBeLessThan(16);
    expect(await photos.find("img_of_another_list")).toBe(-1);
  });

  it("keeps few pages in memory", async () => {
    const { photos, pages } = list(2000);
    await photos.load();
    for (let page = 0; page < 200; page += 1) await photos.range(page * 10, page * 10);
    photos.at(0);
    await settled();
    expect(pages.filter((page) => page === 0)).toHaveLength(2); // was forgotten
  });

  it("says why the list cannot be read", async () => {
    const photos = new PhotoList(() => Promise.reject(new Error("no features")), vi.fn());
    await photos.load();
    expect([photos.loaded, photos.error]).toEqual([true, "no features"]);
  });
});
