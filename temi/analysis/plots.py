"""Figures of the analyses. matplotlib is loaded only when one is drawn.

Figures are made without pyplot: no window system, and nothing global that would have to be closed.
"""

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from temi.analysis.sweep import BetaCurve, choose_beta

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def plot_beta_curve(curve: BetaCurve) -> "Figure":
    """Both entropies over beta, with log C and the chosen beta; the accuracy where it is known."""
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


def plot_cluster_sizes(sizes: npt.ArrayLike) -> "Figure":
    """Images in each cluster, largest cluster first, and the size that all would have if equal."""
    figure, axes = _figure()
    ordered = np.sort(np.asarray(sizes))[::-1]  # (C,)
    # Steps, not bars: a bar is an object of its own, and there may be 25,000 of them.
    axes.stairs(ordered, fill=True)
    axes.axhline(ordered.mean(), color="red", label="equal sizes")
    axes.set(xlabel="cluster, by size", ylabel="images")
    axes.legend()
    return figure


def plot_probabilities(probability: npt.ArrayLike, *, bins: int = 50) -> "Figure":
    """How many images have which probability of their most probable cluster (MSP)."""
    figure, axes = _figure()
    values = np.asarray(probability)  # (N,)
    axes.hist(values, bins=bins, range=(0, 1))
    axes.axvline(float(values.mean()), color="red", label=f"mean {values.mean():.2f}")
    axes.axvline(
        float(np.median(values)),
        color="red",
        linestyle=":",
        label=f"median {np.median(values):.2f}",
    )
    axes.set(xlabel="maximum softmax probability", ylabel="images")
    axes.legend()
    return figure


def _figure() -> tuple["Figure", "Axes"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    return figure, figure.add_subplot()
