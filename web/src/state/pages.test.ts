import { expect, it } from "vitest";
import { Pages } from "./pages.svelte";

interface Asked {
  cursor: string | undefined;
  answer: (data: number[], next?: string) => void;
  fail: (error: Error) => void;
}

function asking(): { list: Pages<number>; asked: Asked[] } {
  const asked: Asked[] = [];
  const list = new Pages<number>(
    (cursor) =>
      new Promise((resolve, reject) => {
        asked.push({ cursor, answer: (data, next) => resolve({ data, next_cursor: next ?? null }), fail: reject });
      }),
  );
  return { list, asked };
}

it("reads page after page", async () => {
  const { list, asked } = asking();
  const first = list.load();
  asked[0]?.answer([1, 2], "b");
  await first;
  expect([list.rows, list.next, list.loaded]).toEqual([[1, 2], "b", true]);
  const second = list.more();
  expect(asked[1]?.cursor).toBe("b");
  asked[1]?.answer([3]);
  await second;
  expect([list.rows, list.next]).toEqual([[1, 2, 3], null]);
  await list.more(); // there is no further page
  expect(asked).toHaveLength(2);
});

it("has no row twice when it is read anew before the answer is there", async () => {
  const { list, asked } = asking();
  const both = Promise.all([list.load(), list.load()]);
  asked[0]?.answer([1]);
  asked[1]?.answer([1]);
  await both;
  expect(list.rows).toEqual([1]);
});

it("drops the next page of a list that was read anew", async () => {
  const { list, asked } = asking();
  const first = list.load();
  asked[0]?.answer([1, 2], "b");
  await first;
  const late = list.more();
  const anew = list.load();
  asked[2]?.answer([0, 1], "a");
  asked[1]?.answer([3]);
  await Promise.all([late, anew]);
  expect([list.rows, list.next]).toEqual([[0, 1], "a"]);
});

it("asks once for a page that is asked for twice", async () => {
  const { list, asked } = asking();
  const first = list.load();
  asked[0]?.answer([1], "b");
  await first;
  const twice = Promise.all([list.more(), list.more()]);
  asked[1]?.answer([2]);
  await twice;
  expect([list.rows, asked.length]).toEqual([[1, 2], 2]);
});

it("keeps its rows after an error and says it, and drops late answers after a clear", async () => {
  const { list, asked } = asking();
  const first = list.load();
  asked[0]?.answer([1]);
  await first;
  const second = list.load();
  asked[1]?.fail(new Error("no connection"));
  await second;
  expect(list.rows).toEqual([1]);
  expect(list.error).not.toBe("");
  const third = list.load();
  list.clear();
  asked[2]?.answer([9]);
  await third;
  expect([list.rows, list.loaded, list.error]).toEqual([[], false, ""]);
});
