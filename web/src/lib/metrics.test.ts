import { describe, expect, it } from "vitest";
import { figureName, figures, shownFigure } from "./metrics";

describe("figures", () => {
  it("come from the metrics that are there", () => {
    const found = figures({ temi: { accuracy: 0.59 }, mean_probability: 0.77, kmeans: null });
    expect(found.map((figure) => figure.name)).toEqual(["Accuracy", "Mean probability"]);
    expect(figures(null)).toEqual([]);
  });

  it("have names and short numbers", () => {
    expect(figureName("temi.nmi")).toBe("NMI");
    expect(figureName("config.n_heads")).toBe("n heads");
    expect(shownFigure(0.123456)).toBe("0.123");
    expect(shownFigure(8)).toBe("8");
    expect(shownFigure(null)).toBe("–");
    expect(shownFigure([1])).toBe("[1]");
  });
});
