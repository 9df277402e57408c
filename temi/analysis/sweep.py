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
from temi.config import TrainConfig
from temi.errors import TemiError
from temi.metrics import evaluate
from temi.standardize import chunks
from temi.train import Trainer

DEFAULT_BETAS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)

# Steps between two calls of `progress`.
_STEPS = 20
# Probabilities computed in one go.
_CHUNK_VALUES = 2**24


@dataclass(frozen=True, kw_only=True)
class BetaPoint:
    beta: float
    occupancy_entropy: float  # H(q(c)): high where all clusters are used
    conditional_entropy: float  # E_x H(q(c|x)): low where images are assigned with confidence
    mean_probability: float  # of the most probable cluster
    loss: float  # of the best head; beta is part of the loss, so not to be compared along a curve
    accuracy: float | None = None  # against labels, where there are some


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
        trainer = Trainer(features, neighbors, one, device=device)
        total = len(configs) * trainer.total_steps
        before = index * trainer.total_steps
        while not trainer.done:
            trainer.run(_STEPS)
            done = trainer.total_steps if trainer.done else trainer.step
            if progress is not None:
                progress(before + done, total)
        points.append(_measure(trainer, features, one, labels))
    return BetaCurve(n_clusters=config.n_clusters, points=tuple(points))


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


def _measure(
    trainer: Trainer,
    features: npt.NDArray[np.floating],
    config: TrainConfig,
    labels: Sequence[object | None] | None,
) -> BetaPoint:
    model = trainer.finish()
    tally = ConfidenceTally(config.n_clusters)
    for rows in chunks(len(features), max(1, _CHUNK_VALUES // config.n_clusters)):
        tally.add(model.predict_proba(features[rows]))
    confidence = tally.result()
    return BetaPoint(
        beta=config.beta,
        occupancy_entropy=confidence.occupancy_entropy,
        conditional_entropy=confidence.conditional_entropy,
        mean_probability=confidence.mean_probability,
        loss=trainer.report().loss,
        accuracy=None if labels is None else evaluate(labels, tally.assigned()).accuracy,
    )
