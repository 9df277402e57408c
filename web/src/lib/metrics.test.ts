import { describe, expect, it } from "vitest";
import { figureName, figures, shownAt, shownChange, shownFigure } from "./metrics";

describe("figures", () => {
  it("come from the metrics that are there", () => {
    const found = figures({ temi: { accuracy: 0.59 }, mean_probability: 0.77, kmeans: null });
    expect(found.map((figure) => figure.name)).toEqual(["Accuracy", "Confidence"]);
    expect(found.map((figure) => figure.shown)).toEqual(["59.0 %", "77.0 %"]);
    expect(figures(null)).toEqual([]);
  });

  it("are percentages where they are shares, and change by points", () => {
    expect(shownAt("metrics.mean_probability", 0.6572)).toBe("65.7 %");
    expect(shownAt("metrics.size_kl", 0.076)).toBe("0.076");
    expect(shownChange("metrics.mean_probability", 0.657, 0.644)).toBe("-1.3 points");
    expect(shownChange("metrics.empty_clusters", 0, 1)).toBe("+1");
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
