"""Choosing beta without labels: train over a grid of it and look at two entropies.

Near 0.5 every image sits in all clusters alike: both entropies are at log C. As beta grows,
assignments become confident (the conditional entropy falls), and later clusters become uneven
(the occupancy entropy falls too). The beta wanted is the lowest one with confident assignments.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from math import log
from typing import Any

import numpy as np
import numpy.typing as npt

from temi.analysis.confidence import ConfidenceTally
from temi.analysis.metrics import evaluate
from temi.config import TrainConfig
from temi.errors import TemiError
from temi.standardize import chunks
from temi.training.trainer import Trainer

DEFAULT_BETAS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)

# Steps between two calls of `progress`.
_STEPS = 20
# Probabilities computed in one go.
_CHUNK_VALUES = 2**24


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """What one run of a sweep came to."""

    occupancy_entropy: float  # H(q(c)): high where all clusters are used
    conditional_entropy: float  # E_x H(q(c|x)): low where images are assigned with confidence
    mean_probability: float  # of the most probable cluster
    size_kl: float  # KL of the cluster sizes to equal sizes
    loss: float  # of the best head; what is swept is part of the loss: not to be compared by it
    accuracy: float | None = None  # against labels, where there are some


@dataclass(frozen=True, kw_only=True)
class BetaPoint(RunFigures):
    beta: float


@dataclass(frozen=True, kw_only=True)
class SizePoint(RunFigures):
    n_clusters: int


@dataclass(frozen=True, kw_only=True)
class BetaCurve:
    n_clusters: int
    points: tuple[BetaPoint, ...]  # by rising beta

    def __post_init__(self) -> None:
        if self.n_clusters < 2:
            raise TemiError("a curve needs at least two clusters")
        betas = [point.beta for point in self.points]
        if not betas or any(a >= b for a, b in pairwise(betas)):
            raise TemiError("a curve needs points in order of rising beta")

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def sweep_beta(
    features: npt.NDArray[np.floating],
    neighbors: npt.NDArray[np.integer],
    config: TrainConfig,
    *,
    betas: Sequence[float] = DEFAULT_BETAS,
    labels: Sequence[object | None] | None = None,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> BetaCurve:
    """Train once for every beta, all else and the seed being equal.

    ``progress`` is told how many steps are done, out of how many; a run that stops early counts
    in full once it has ended.
    """
    # All settings are checked before the first of many minutes is spent.
    configs = [replace(config, beta=beta) for beta in sorted(set(betas))]
    points = []
    for index, one in enumerate(configs):
        figures = train_once(
            features,
            neighbors,
            one,
            labels=labels,
            device=device,
            progress=_part_of(progress, index, len(configs)),
        )
        points.append(BetaPoint(beta=one.beta, **asdict(figures)))
    return BetaCurve(n_clusters=config.n_clusters, points=tuple(points))


def train_once(
    features: npt.NDArray[np.floating],
    neighbors: npt.NDArray[np.integer],
    config: TrainConfig,
    *,
    measured: npt.NDArray[np.floating] | None = None,
    labels: Sequence[object | None] | None = None,
    device: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> RunFigures:
    """One run, and its figures over ``measured``, by default over what it was trained on."""
    trainer = Trainer(features, neighbors, config, device=device)
    while not trainer.done:
        trainer.run(_STEPS)
        if progress is not None:
            progress(trainer.total_steps if trainer.done else trainer.step, trainer.total_steps)
    return _measure(trainer, features if measured is None else measured, config, labels)


def choose_beta(curve: BetaCurve, *, tolerance: float = 0.1, ceiling: float = 0.5) -> float | None:
    """The lowest beta from which on the conditional entropy is low and stays low, if any.

    Entropies are compared as shares of log C, the value that they start from at beta = 0.5.
    "Low" means: within ``tolerance`` of the way from the lowest point of the curve up to log C.
    The lowest point is the reference because images that are hard to tell apart keep some
    entropy at every beta; log C is, because it does not depend on where the grid begins.
    If even the lowest point is above ``ceiling`` (by default the entropy of an even choice
    between the square root of C clusters), no beta has given confident assignments: None.
    """
    shares = [point.conditional_entropy / log(curve.n_clusters) for point in curve.points]
    lowest = min(shares)
    if lowest > ceiling:
        return None
    limit = lowest + tolerance * (1 - lowest)
    chosen = None
    for point, share in zip(reversed(curve.points), reversed(shares), strict=True):
        if share > limit:
            break
        chosen = point.beta
    return chosen


def choose_n_clusters(points: Sequence[SizePoint], *, ceiling: float = 0.1) -> int | None:
    """The most clusters that images are still assigned to with confidence, if any.

    Clusters beyond the groups that are there share a group between them, and which of them an
    image goes to is arbitrary: the conditional entropy rises. Confident means: it is at most
    ``ceiling`` of log C. Smaller numbers may well fail that: four clusters for six equal groups
    must cut some of them. A hint, no proof: groups may have parts of their own.
    """
    confident = [
        point.n_clusters
        for point in points
        if point.conditional_entropy <= ceiling * log(point.n_clusters)
    ]
    return max(confident, default=None)


def _part_of(
    progress: Callable[[int, int], None] | None, index: int, runs: int
) -> Callable[[int, int], None] | None:
    """Progress of one of several runs of the same length."""
    if progress is None:
        return None
    return lambda done, total: progress(index * total + done, runs * total)


def _measure(
    trainer: Trainer,
    features: npt.NDArray[np.floating],
    config: TrainConfig,
    labels: Sequence[object | None] | None,
) -> RunFigures:
    model = trainer.finish()
    tally = ConfidenceTally(config.n_clusters)
    for rows in chunks(len(features), max(1, _CHUNK_VALUES // config.n_clusters)):
        tally.add(model.predict_proba(features[rows]))
    confidence = tally.result()
    return RunFigures(
        occupancy_entropy=confidence.occupancy_entropy,
        conditional_entropy=confidence.conditional_entropy,
        mean_probability=confidence.mean_probability,
        size_kl=confidence.size_kl,
        loss=trainer.report().loss,
        accuracy=None if labels is None else evaluate(labels, tally.assigned()).accuracy,
    )
