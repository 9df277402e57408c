import { describe, expect, it } from "vitest";
import { cellsIn, columnsFor, indexAt } from "./grid";

const shape = { columns: 3, cell: 100, gap: 10, rowHeight: 130, count: 8 };

describe("columnsFor", () => {
  it("fits cells and gaps into the width", () => {
    expect(columnsFor(320, 100, 10)).toBe(3);
    expect(columnsFor(319, 100, 10)).toBe(2);
  });
  it("has one column however narrow", () => expect(columnsFor(10, 100, 10)).toBe(1));
});

describe("cellsIn", () => {
  it("finds the cells that a rectangle touches", () => {
    expect(cellsIn({ left: 50, top: 50, right: 150, bottom: 60 }, shape)).toEqual([0, 1]);
    expect(cellsIn({ left: 0, top: 0, right: 5, bottom: 300 }, shape)).toEqual([0, 3, 6]);
  });
  it("finds none in the gap between columns", () => {
    expect(cellsIn({ left: 102, top: 0, right: 108, bottom: 50 }, shape)).toEqual([]);
  });
  it("ends at the last photo", () => {
    expect(cellsIn({ left: -50, top: 270, right: 1000, bottom: 9000 }, shape)).toEqual([6, 7]);
  });
});

describe("indexAt", () => {
  it("is the cell of a point, inside of the list", () => {
    expect(indexAt({ x: 115, y: 135 }, shape)).toBe(4);
    expect(indexAt({ x: 900, y: 9000 }, shape)).toBe(7);
    expect(indexAt({ x: -9, y: -9 }, shape)).toBe(0);
  });
});
