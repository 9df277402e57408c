"""Figures of the analyses; matplotlib is loaded when the first one is drawn.

Figures are made without pyplot, which has global state and needs a window system.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from temi.analysis.choice import BetaCurve, choose_beta
from temi.analysis.fonts import drawable, font_families
from temi.analysis.reliability import Reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text


_BLUE, _RED, _GREEN, _GRAY = "#3b6ea5", "#c0392b", "#2e8b6f", "#8a8f98"
_NUMBERED_CELLS = 400  # larger tables show colors without numbers
_NAME_LENGTH = 28
_NAMED_BARS = 40
_STEPS = 2_000  # more than there are pixels


@dataclass(frozen=True, kw_only=True)
class TrainingCurves:
    """Losses and entropies of a training run by step."""

    steps: npt.NDArray[np.int64]  # (S,)
    losses: npt.NDArray[np.float64]  # (S, H), of each head
    use_steps: npt.NDArray[np.int64]  # (T,), at which the entropies were measured
    occupancy_entropy: npt.NDArray[np.float64]  # (T,), H(q(c)) of the best head
    conditional_entropy: npt.NDArray[np.float64]  # (T,), E_x H(q(c|x))
    max_entropy: float  # log C


@dataclass(frozen=True, kw_only=True)
class SweepFigures:
    """Shares between 0 and 1 for each value of a setting; NaN where there is none."""

    parameter: str
    values: Sequence[float]  # (P,), ascending
    doubt: Sequence[float]  # (P,), the conditional entropy as a share of log C
    confidence: Sequence[float]  # (P,), mean probability of the chosen cluster
    stability: Sequence[float]  # (P,), agreement of groupings of random parts of the images
    evenness: Sequence[float]  # (P,), clusters of equal size that would be as uneven, per cluster
    accuracy: Sequence[float]  # (P,)
    suggested: float | None


def plot_sweep(figures: SweepFigures) -> "Figure":
    """Plot the figures of a sweep over the values, and mark the suggested value."""
    figure, axes = _figure(width=7)
    sizes = figures.parameter == "n_clusters"
    for name, values, color, marker in (
        ("doubt", figures.doubt, _RED, "o"),
        ("confidence", figures.confidence, _BLUE, "o"),
        ("stability", figures.stability, _GREEN, "o"),
        ("evenness of the sizes", figures.evenness, _GRAY, "o"),
        ("accuracy", figures.accuracy, "black", "x"),
    ):
        if not np.isnan(values).all():
            axes.plot(figures.values, values, color=color, marker=marker, label=name)
    if sizes:
        axes.set_xscale("log")  # values are about equally far apart
    if figures.suggested is not None:
        label = f"suggested: {figures.suggested:g}"
        axes.axvline(figures.suggested, color="black", linestyle="--", label=label)
    axes.set_xticks(figures.values, [f"{value:g}" for value in figures.values])
    axes.tick_params(axis="x", labelsize=8)  # up to 20 values
    axes.minorticks_off()
    axes.set(xlabel="clusters" if sizes else figures.parameter, ylim=(0, 1.02))
    axes.yaxis.set_major_formatter(lambda share, _position: f"{share:.0%}")
    figure.legend(frameon=False, loc="outside upper center", ncols=3)
    return figure


def plot_beta_curve(curve: BetaCurve) -> "Figure":
    """Plot both entropies over beta, with log C, the chosen beta and the accuracy if known."""
    figure, axes = _figure()
    betas = [point.beta for point in curve.points]
    axes.plot(betas, [p.occupancy_entropy for p in curve.points], marker="o", label="H(q(c))")
    axes.plot(betas, [p.conditional_entropy for p in curve.points], marker="o", label="H(q(c|x))")
    axes.axhline(np.log(curve.n_clusters), color="gray", linestyle="--", label="log C")
    chosen = choose_beta(curve)
    if chosen is not None:
        axes.axvline(chosen, color="red", linestyle=":", label=f"chosen: {chosen:g}")
    axes.set(xlabel="beta", ylabel="entropy (nats)", ylim=(0, None))
    axes.legend(loc="center right")
    scored = [(p.beta, p.accuracy) for p in curve.points if p.accuracy is not None]
    if scored:
        right = axes.twinx()
        right.plot(*zip(*scored, strict=True), color="black", marker="x", label="accuracy")
        right.set(ylabel="accuracy (crosses)", ylim=(0, 1))
    return figure


def plot_reliability(reliability: Reliability) -> "Figure":
    """Plot the share of right labels over their probability; the area of a point is its images."""
    figure, axes = _figure(width=5, height=4.6)
    axes.plot([0, 1], [0, 1], color=_GRAY, linestyle="--", label="as it should be")
    axes.scatter(
        [each.probability for each in reliability.bins],
        [each.accuracy for each in reliability.bins],
        s=[20 + 380 * each.images / reliability.images for each in reliability.bins],
        color=_BLUE,
        label=f"{reliability.images:,} reviewed images",
    )
    axes.set(xlabel="probability", ylabel="right labels", xlim=(0, 1.02), ylim=(0, 1.02))
    axes.set_title(f"calibration error {reliability.error:.1%}", fontsize=10)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _position: f"{share:.0%}")
    axes.legend(frameon=False, loc="upper left")
    return figure


def plot_novelty_counts(counts: Sequence[int]) -> "Figure":
    """Plot the share of images in each part of the novelty; images like the training are even."""
    figure, axes = _figure(width=6)
    shares = np.asarray(counts) / max(1, sum(counts))
    edges = np.linspace(0, 1, len(counts) + 1)
    axes.stairs(shares, edges, fill=True, color=_BLUE, label=f"{sum(counts):,} images")
    axes.axhline(1 / len(counts), color=_RED, linestyle="--", label="images like the training")
    axes.set(xlabel="novelty", ylabel="images", xlim=(0, 1), ylim=(0, None))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda share, _position: f"{share:.0%}")
    axes.legend(frameon=False, loc="upper left")
    return figure


def plot_cluster_sizes(sizes: npt.ArrayLike, names: Sequence[str] = ()) -> "Figure":
    """Plot the images in each cluster, largest first, and the mean size.

    Few clusters are bars with their names, if these are given; many are one outline.
    """
    counts = np.asarray(sizes)  # (C,)
    order = np.argsort(-counts, kind="stable")
    if 0 < len(names) <= _NAMED_BARS:
        figure = _plot_named_sizes(counts[order], [names[index] for index in order])
    else:
        figure = _plot_many_sizes(counts[order])
    return figure


def _plot_named_sizes(counts: npt.NDArray[np.integer], names: Sequence[str]) -> "Figure":
    figure, axes = _figure(width=7, height=1.3 + 0.24 * len(names))
    axes.barh(range(len(names)), counts, color=_BLUE, height=0.72)
    axes.set_yticks(range(len(names)), [_shown(name) for name in names])
    axes.tick_params(axis="y", length=0)
    _set_names(axes.get_yticklabels())
    axes.invert_yaxis()  # the largest on top
    axes.axvline(float(counts.mean()), color=_RED, label=f"equal sizes: {counts.mean():.3g}")
    axes.legend(frameon=False, loc="lower right")
    axes.set(xlabel="images", xlim=(0, max(1, 1.05 * counts.max())))
    axes.margins(y=0.02)
    _set_integers(axes.xaxis)
    return figure


def _plot_many_sizes(counts: npt.NDArray[np.integer]) -> "Figure":
    figure, axes = _figure()
    # Stairs, not bars: every bar is an object, and there may be 25,000. Of the clusters that share
    # a pixel, the first is drawn.
    stride = max(1, len(counts) // _STEPS)
    edges = [*range(0, len(counts), stride), len(counts)]
    axes.stairs(counts[::stride], edges, fill=True, color=_BLUE)
    if len(counts):
        mean = float(counts.mean())
        axes.axhline(mean, color=_RED, label=f"equal sizes: {mean:.3g}")
        axes.legend(frameon=False, loc="upper right")  # loc="best" takes seconds
    highest = max(1, 1.05 * counts.max(initial=0))
    axes.set(xlabel="number of clusters, largest first", ylabel="images")
    axes.set(xlim=(0, max(1, len(counts))), ylim=(0, highest))
    _set_integers(axes.xaxis)
    _set_integers(axes.yaxis)
    return figure


def _set_integers(axis: "Axis") -> None:
    from matplotlib.ticker import MaxNLocator, StrMethodFormatter

    axis.set_major_locator(MaxNLocator(integer=True))
    axis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))


def plot_probabilities(probability: npt.ArrayLike, *, bins: int = 50) -> "Figure":
    """Plot a histogram of the maximum softmax probability (MSP) of the images."""
    values = np.asarray(probability)  # (N,)
    counts, _ = np.histogram(values, bins=bins, range=(0, 1))
    return plot_probability_counts(
        counts, mean=float(values.mean()), median=float(np.median(values))
    )


def plot_probability_counts(
    counts: npt.ArrayLike, *, mean: float | None, median: float | None
) -> "Figure":
    """Plot the same histogram from counts in bins of equal width between 0 and 1."""
    figure, axes = _figure()
    heights = np.asarray(counts)  # (K,)
    edges = np.linspace(0, 1, len(heights) + 1)
    axes.bar(edges[:-1], heights, width=np.diff(edges), align="edge", color=_BLUE)
    if mean is not None:
        axes.axvline(mean, color=_RED, label=f"mean {mean:.2f}")
    if median is not None:
        axes.axvline(median, color=_RED, linestyle=":", label=f"median {median:.2f}")
    if mean is not None or median is not None:
        axes.legend(frameon=False, loc="upper left")
    axes.set(xlabel="maximum softmax probability", ylabel="images", xlim=(0, 1), ylim=(0, None))
    _set_integers(axes.yaxis)
    return figure


def plot_confusion(
    counts: npt.NDArray[np.integer], clusters: Sequence[str], labels: Sequence[str]
) -> "Figure":
    """Plot the images of each true label (columns) in each cluster (rows): (C, L).

    Rows are ordered by their majority label, so that a good clustering shows as a diagonal.
    Colors are shares of the cluster.
    """
    majority = counts.max(axis=1)
    order = np.lexsort((-majority, counts.argmax(axis=1), majority == 0))  # empty clusters last
    counts, clusters = counts[order], [clusters[row] for row in order]
    rows, columns = counts.shape
    cell = 0.3 if counts.size <= _NUMBERED_CELLS else 0.17  # inches
    figure, axes = _figure(width=3 + cell * columns, height=2.2 + cell * rows)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(columns), [_shown(label) for label in labels], rotation=90)
    axes.set_yticks(range(rows), [_shown(name) for name in clusters])
    _set_names((*axes.get_xticklabels(), *axes.get_yticklabels()))
    axes.tick_params(length=0, labelsize=8 if counts.size <= _NUMBERED_CELLS else 7)
    axes.set(xlabel="true label", ylabel="cluster")
    axes.spines[["top", "right"]].set_visible(True)
    if counts.size <= _NUMBERED_CELLS:
        for (row, column), count in np.ndenumerate(counts):
            color = "white" if shares[row, column] > 0.5 else "black"
            if count:
                axes.text(column, row, str(count), ha="center", va="center", color=color, size=7)
    figure.colorbar(image, ax=axes, label="share of the cluster", fraction=0.04, pad=0.02)
    return figure


def plot_training(curves: TrainingCurves) -> "Figure":
    """Plot the loss of each head, and the entropies of the best one."""
    from matplotlib.collections import LineCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = figure.subplots(1, 2)
    stride = max(1, len(curves.steps) // _STEPS)
    lines = [np.column_stack([curves.steps, head])[::stride] for head in curves.losses.T]
    left.add_collection(LineCollection(lines, colors=_BLUE, alpha=0.35, linewidths=0.8))
    best = int(np.nan_to_num(curves.losses[-1], nan=np.inf).argmin())
    left.plot(curves.steps, curves.losses[:, best], color=_RED, label=f"best head: {best}")
    left.autoscale_view()
    left.set(xlabel="step", ylabel="loss", title=f"{curves.losses.shape[1]} heads")
    left.legend(frameon=False, loc="upper right")
    right.plot(curves.use_steps, curves.occupancy_entropy, color=_BLUE, label="H(q(c))")
    right.plot(curves.use_steps, curves.conditional_entropy, color=_RED, label="H(q(c|x))")
    right.axhline(curves.max_entropy, color=_GRAY, linestyle="--", label="log C")
    right.set(xlabel="step", ylabel="entropy (nats)", title="use of the clusters")
    right.set_ylim(0, 1.05 * curves.max_entropy)
    right.legend(frameon=False, loc="center right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _figure(width: float = 6, height: float = 4) -> tuple["Figure", "Axes"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _shown(name: str) -> str:
    """Shorten a name and replace what the fonts cannot draw."""
    text = drawable(name)
    return text if len(text) <= _NAME_LENGTH else text[: _NAME_LENGTH - 1] + "…"


def _set_names(labels: "Sequence[Text]") -> None:
    for label in labels:
        label.set_parse_math(False)  # a dollar sign in a name is not TeX
        label.set_fontfamily(font_families())
