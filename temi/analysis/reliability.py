"""Reliability of probabilities: how often labels of a probability are right."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError

_BINS = 10


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """Images whose probability is in one tenth of the range."""

    probability: float  # mean over the images
    accuracy: float  # share of right labels
    images: int


@dataclass(frozen=True, kw_only=True)
class Reliability:
    bins: tuple[ReliabilityBin, ...]  # by probability; empty ones are left out
    error: float  # expected calibration error: mean of |probability - accuracy| over the images
    error_by_chance: float  # what perfect probabilities would show with so few images
    images: int


def measure_reliability(probability: npt.ArrayLike, right: npt.ArrayLike) -> Reliability:
    """Compare probabilities (n,) with whether the labels are right (n,), in bins of a tenth."""
    sure = np.asarray(probability, dtype=np.float64)
    known = np.asarray(right, dtype=np.float64)
    if sure.ndim != 1 or sure.shape != known.shape or len(sure) == 0:
        raise TemiError("reliability needs probabilities and outcomes of the same images: (n,)")
    numbers = np.minimum((sure * _BINS).astype(np.int64), _BINS - 1)
    groups = [(sure[chosen], known[chosen]) for chosen in (numbers == n for n in range(_BINS))]
    bins = tuple(
        ReliabilityBin(
            probability=float(of.mean()), accuracy=float(outcomes.mean()), images=len(of)
        )
        for of, outcomes in groups
        if len(of)
    )
    total = len(sure)
    return Reliability(
        bins=bins,
        error=sum(each.images * abs(each.probability - each.accuracy) for each in bins) / total,
        error_by_chance=sum(map(_chance, bins)) / total,
        images=total,
    )


def _chance(each: ReliabilityBin) -> float:
    """The expected absolute deviation of a sum of coin tosses, by the normal approximation."""
    spread = each.probability * (1 - each.probability)
    return float(np.sqrt(2 / np.pi * spread * each.images))
