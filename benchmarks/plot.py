"""Draws docs/images/benchmarks.png from the figures in docs/benchmarks.json.

.venv/bin/python -m benchmarks.plot
"""

import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

DOCS = Path(__file__).resolve().parent.parent / "docs"
METHODS = ("k-means", "SCAN", "PMI", "WPMI", "TEMI")
COLORS = ("#9aa5b1", "#c9a227", "#6aa3d5", "#3d7ab8", "#d1495b")
Figures = dict[str, Any]


def plot_quality(axes: Axes, rows: list[Figures]) -> None:
    names = list(dict.fromkeys(row["set"] for row in rows))
    for place, (method, color) in enumerate(zip(METHODS, COLORS, strict=True)):
        chosen = {row["set"]: row for row in rows if row["method"] == method}
        axes.bar(
            [names.index(name) + 0.16 * (place - 2) for name in chosen],
            [row["ACC"] for row in chosen.values()],
            width=0.15,
            color=color,
            yerr=[row["ACC deviation"] or 0 for row in chosen.values()],
            label=method,
        )
    axes.set_xticks(range(len(names)), names)
    axes.set_ylabel("accuracy, % (mean and deviation over seeds)")
    axes.set_title("TEMI and what it is compared with")
    axes.legend(ncols=5, fontsize=8, loc="upper center")
    axes.set_ylim(0, 100)


def plot_time(axes: Axes, rows: list[Figures]) -> None:
    for row, color in zip(rows, ("#d1495b", "#3d7ab8", "#2f9e6e"), strict=False):
        for name, style in (("curve", "-"), ("paper curve", "--")):
            seconds, accuracy = zip(*[point[1:] for point in row[name]], strict=True)
            label = f"{row['set']}, {'default' if name == 'curve' else 'paper'}"
            axes.plot(seconds, accuracy, style, color=color, label=label)
    axes.set_xscale("log")
    axes.set_xlabel("seconds of training")
    axes.set_ylabel("accuracy, %")
    axes.set_title("Time to quality")
    axes.legend(fontsize=8)


def plot_mining(axes: Axes, rows: list[Figures]) -> None:
    for method, color in (("exact", "#3d7ab8"), ("approximate", "#d1495b")):
        chosen = sorted((r for r in rows if r["method"] == method), key=lambda r: r["rows"])
        axes.plot(
            [row["rows"] for row in chosen],
            [row["seconds"] for row in chosen],
            "o-",
            color=color,
            label=method,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("rows of 384 features")
    axes.set_ylabel("seconds")
    axes.set_title("Mining 50 neighbors")
    axes.legend()


def plot_shares(axes: Axes, rows: list[Figures]) -> None:
    chosen = [row for row in rows if row["share"] is not None and "predict" not in row["what"]]
    axes.barh(
        [row["what"] for row in chosen], [100 * row["share"] for row in chosen], color="#3d7ab8"
    )
    axes.invert_yaxis()
    axes.set_xlim(0, 110)
    axes.set_xlabel("% of the machine's limit")
    axes.set_title("Each stage's share of its limit")


def main() -> None:
    figures = json.loads((DOCS / "benchmarks.json").read_text())
    figure = Figure(figsize=(13, 9), layout="constrained")
    parts = {
        "quality": plot_quality,
        "time to quality": plot_time,
        "mining": plot_mining,
        "limits": plot_shares,
    }
    for axes, (name, draw) in zip(figure.subplots(2, 2).flat, parts.items(), strict=True):
        draw(axes, figures[name])
    figure.savefig(DOCS / "images" / "benchmarks.png", dpi=110)


if __name__ == "__main__":
    main()
