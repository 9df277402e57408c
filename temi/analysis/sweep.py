"""Choosing beta and the number of clusters without labels, by the entropies of trained models.

With beta near 0.5, all clusters are equally probable for every image: both entropies are log C.
As beta grows, assignments become confident (the conditional entropy falls), and later clusters
become uneven (the occupancy entropy falls too). The best beta is the lowest one with confident
assignments.
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
# Probabilities computed at a time.
_CHUNK_VALUES = 2**24


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """The figures of one run of a sweep."""

    occupancy_entropy: float  # H(q(c)): high where all clusters are used
    conditional_entropy: float  # E_x H(q(c|x)): low where images are assigned with confidence
    mean_probability: float  # of the most probable cluster
    size_kl: float  # KL of the cluster sizes to equal sizes
    loss: float  # of the best head; depends on the swept setting, so do not compare runs by it
    accuracy: float | None = None  # None without labels


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
            raise TemiError(f"a curve needs at least two clusters, not {self.n_clusters}")
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
    """Train once for every beta with otherwise equal settings, including the seed.

    ``progress`` is called with the number of finished steps and the total; a run that stops early
    counts as complete.
    """
    # Validates all settings before the first training, which takes minutes.
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
    """Train once and return the figures over ``measured``, by default the training features."""
    trainer = Trainer(features, neighbors, config, device=device)
    while not trainer.done:
        trainer.run(_STEPS)
        if progress is not None:
            progress(trainer.total_steps if trainer.done else trainer.step, trainer.total_steps)
    return _measure(trainer, features if measured is None else measured, config, labels)


def choose_beta(curve: BetaCurve, *, tolerance: float = 0.1, ceiling: float = 0.5) -> float | None:
    """Return the lowest beta from which on the conditional entropy is low and stays low, or None.

    Entropies are compared as shares of log C, their value at beta = 0.5. "Low" means at most
    ``tolerance`` of the way from the lowest point of the curve up to log C. The lowest point is
    the lower reference because images that are hard to distinguish keep some entropy at every
    beta; log C is the upper one because it does not depend on where the grid starts. If even the
    lowest point is above ``ceiling`` (by default the entropy of a uniform choice between the
    square root of C clusters), no beta gives confident assignments, and the result is None.
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
    """Return the largest number of clusters with confident assignments, or None.

    With more clusters than groups, several clusters share a group and assignments between them
    are arbitrary: the conditional entropy rises. Confident means at most ``ceiling`` of log C.
    Smaller numbers may fail the test: four clusters for six equal groups must split some of them.
    The result is a heuristic: groups may have subgroups.
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
    """Convert the progress of one run to that of several runs of the same length."""
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
