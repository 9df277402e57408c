import { describe, expect, it } from "vitest";
import { groupColor, painted, probabilityColor } from "./colors";
import { GridIndex } from "./grid-index";
import { inside, rowsInside, thinned } from "./lasso";
import { ABSENT, joined, readLabels, readPoints } from "./points";
import { syntheticFiles } from "./synthetic";
import { fromQuery, panned, shownArea, toMap, toQuery, toScreen, zoomedAt } from "./view";

const size = { width: 800, height: 600 };
const square = [{ x: -0.5, y: -0.5 }, { x: 0.5, y: -0.5 }, { x: 0.5, y: 0.5 }, { x: -0.5, y: 0.5 }];

function scattered(count: number): GridIndex {
  const points = readPoints(syntheticFiles(count).map);
  return points.index;
}

describe("the view", () => {
  it("maps to the screen and back", () => {
    const view = { x: 0.2, y: -0.1, zoom: 7 };
    const back = toMap(toScreen({ x: 0.3, y: 0.1 }, view, size), view, size);
    expect(back.x).toBeCloseTo(0.3);
    expect(back.y).toBeCloseTo(0.1);
  });

  it("keeps the place under the pointer while it zooms", () => {
    const at = { x: 600, y: 100 };
    const view = { x: 0.1, y: 0.1, zoom: 2 };
    const next = zoomedAt(view, 1.5, at, size);
    expect(toMap(at, next, size).x).toBeCloseTo(toMap(at, view, size).x);
    expect(next.zoom).toBeCloseTo(3);
  });

  it("pans by pixels", () => {
    const view = { x: 0, y: 0, zoom: 2 };
    const before = toScreen({ x: 0, y: 0 }, view, size);
    const after = toScreen({ x: 0, y: 0 }, panned(view, 30, -20, size), size);
    expect(after.x - before.x).toBeCloseTo(30);
    expect(after.y - before.y).toBeCloseTo(-20);
  });

  it("stands in the address, and the whole map adds nothing", () => {
    expect(toQuery({ x: 0, y: 0, zoom: 1 })).toEqual({ x: null, y: null, zoom: null });
    const view = { x: 0.12345678, y: -0.5, zoom: 120 };
    const query = toQuery(view) as Record<string, string>;
    expect(fromQuery(query).x).toBeCloseTo(view.x, 5);
    expect(fromQuery({ x: "no", zoom: "1e9" })).toEqual({ x: 0, y: 0, zoom: 4000 });
  });
});

describe("the grid", () => {
  it("finds the same points as a search through all", () => {
    const index = scattered(5000);
    const area = shownArea({ x: 0.1, y: 0.2, zoom: 3 }, size);
    const found: number[] = [];
    index.within(area, (row) => found.push(row));
    const expected = [...index.x.keys()].filter((row) => {
      const [x, y] = [index.x[row]!, index.y[row]!];
      return x >= area.left && x <= area.right && y >= area.bottom && y <= area.top;
    });
    expect(found.sort((a, b) => a - b)).toEqual(expected);
    expect(expected.length).toBeGreaterThan(10);
  });

  it("picks the nearest point within the radius", () => {
    const index = new GridIndex(Float32Array.of(0, 0.1, 0.5), Float32Array.of(0, 0, 0.5));
    expect(index.nearest(0.06, 0, 0.2)).toBe(1);
    expect(index.nearest(0.06, 0, 0.2, (row) => row !== 1)).toBe(0);
    expect(index.nearest(-0.9, -0.9, 0.05)).toBe(-1);
  });

  it("ranges hold every point of a view once", () => {
    const index = scattered(5000);
    const ranges = index.ranges({ left: -1, right: 1, bottom: -1, top: 1 });
    expect(ranges).toEqual([[0, 5000]]);
  });
});

describe("the lasso", () => {
  it("knows inside from outside", () => {
    expect(inside(0, 0, square)).toBe(true);
    expect(inside(0.6, 0, square)).toBe(false);
  });

  it("selects what a test of each point selects", () => {
    const index = scattered(20_000);
    const star = Array.from({ length: 40 }, (_, at) => {
      const radius = at % 2 ? 0.3 : 0.8;
      return { x: radius * Math.cos((at / 40) * 2 * Math.PI), y: radius * Math.sin((at / 40) * 2 * Math.PI) };
    });
    const expected = [...index.x.keys()].filter((row) => inside(index.x[row]!, index.y[row]!, star));
    expect(rowsInside(index, star).sort((a, b) => a - b)).toEqual(expected);
    expect(rowsInside(index, star.slice(0, 2))).toEqual([]);
  });

  it("thins a drawn line", () => {
    expect(thinned([{ x: 0, y: 0 }, { x: 1, y: 0 }, { x: 5, y: 0 }], 3)).toEqual([{ x: 0, y: 0 }, { x: 5, y: 0 }]);
  });
});

describe("the files", () => {
  it("joins labels to points by image id", () => {
    const files = syntheticFiles(500);
    const points = readPoints(files.map);
    const labels = readLabels(files.labels, points);
    expect(points.ids.at(7)).toBe("img_00000000000000000000000007");
    expect(labels.name(7)).toBe("00000007.jpg");
    expect(labels.missing).toBe(0);
    const { codes, texts } = labels.trueLabels();
    expect(texts[codes[7]!]).toBe(labels.trueLabel(7));
    expect(Number(labels.trueLabel(7).slice(6))).toBe(labels.clusters[7]);
  });

  it("knows photos that only one of the files has", () => {
    const points = readPoints(syntheticFiles(600).map);
    const labels = readLabels(syntheticFiles(500).labels, points);
    expect(labels.clusters[499]).toBeGreaterThanOrEqual(0);
    expect(labels.clusters[500]).toBe(ABSENT);
    const fewer = readPoints(syntheticFiles(400).map);
    expect(readLabels(syntheticFiles(500).labels, fewer).missing).toBe(100);
  });

  it("joins in another order, too", () => {
    const ids = readPoints(syntheticFiles(10).map).ids;
    const rows = joined(ids, ids);
    expect([...rows]).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  });
});

describe("colors", () => {
  it("use the palette again after twenty groups and gray for none", () => {
    expect(groupColor(20)).toBe(groupColor(0));
    expect(groupColor(-1)).not.toBe(groupColor(0));
    expect(new Set(Array.from({ length: 20 }, (_, number) => groupColor(number).join())).size).toBe(20);
  });

  it("run from dark to light with the probability", () => {
    const light = (color: readonly number[]) => color.reduce((sum, value) => sum + value, 0);
    expect(light(probabilityColor(1))).toBeGreaterThan(light(probabilityColor(0)));
    expect(probabilityColor(2)).toEqual(probabilityColor(1));
  });

  it("hide and fade points", () => {
    const colors = painted({ count: 3, color: () => [1, 2, 3], hidden: (row) => row === 0, faded: (row) => row === 1 });
    expect([...colors.slice(0, 4)]).toEqual([0, 0, 0, 0]);
    expect(colors[7]).toBeLessThan(64);
    expect([...colors.slice(8)]).toEqual([1, 2, 3, 255]);
  });
});
