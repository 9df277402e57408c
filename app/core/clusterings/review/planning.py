"""What is left to review until the purity of a cluster is proven, and what it is worth.

A plan reviews all images of the least sure bands, where the wrong ones are, and a random sample of
the others. The bands that are reviewed in full are chosen so that the fewest answers are expected.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.core.clusterings.review.purity import (
    CONFIDENCE,
    ROUNDING,
    Band,
    Floats,
    evidence,
    most_wrong,
)

MIN_PURITY = 0.95
PILOT = 20  # random answers after which the estimate of a cluster says where to go on
_PRIOR = 2.0  # answers that the model's own doubt counts for


class Plan(NamedTuple):
    sample: int  # more answers to random images
    bands: int  # the least sure ones, of which all images are reviewed
    answers: int  # expected, of both
    images: float  # of the cluster when its wrong ones have been moved away
    confirmed: int  # images of the cluster that people have confirmed already

    @property
    def gain(self) -> float:
        """Images for each answer that get a finished label by it."""
        return (self.images - self.confirmed) / max(self.answers, 1)


class _Case(NamedTuple):
    """A cluster if the images of its first bands are all reviewed."""

    answers: float
    size: float
    wrong: float
    unreviewed: float
    sampled: float
    sampled_wrong: float
    rate: float  # of wrong images that are expected among the unreviewed


def plan_clusters(
    clusters: Sequence[Sequence[Band]],
    min_purity: float = MIN_PURITY,
    confidence: float = CONFIDENCE,
) -> list[Plan]:
    """The plan of each cluster; its bands are in ascending order of probability."""
    scale = doubt_scale([band for bands in clusters for band in bands])
    cases = [_cases(bands, scale) for bands in clusters]
    flat = np.array([case for some in cases for case in some], np.float64).reshape(-1, 7)
    sample = _needed_samples(flat, min_purity, confidence)
    plans, start = [], 0
    for bands, some in zip(clusters, cases, strict=True):
        costs = flat[start : start + len(some), 0] + sample[start : start + len(some)]
        best = int(np.argmin(costs))
        rate, more = some[best].rate, float(sample[start + best])
        left = some[best].size - some[best].wrong - rate * more
        confirmed = sum(band.right for band in bands)
        plan = Plan(int(more), best, int(costs[best]), left, confirmed)
        plans.append(_pilot(bands, plan, min_purity, confidence))
        start += len(some)
    return plans


def doubt_scale(bands: Sequence[Band]) -> float:
    """How many times as many images are wrong as the model expects; 1 before any answer."""
    expected = sum(band.sampled * band.doubt for band in bands)
    wrong = sum(band.sampled_wrong for band in bands)
    return (wrong + _PRIOR) / (expected + _PRIOR)


def expected_purity(bands: Sequence[Band], scale: float) -> float | None:
    """By the model's probabilities, corrected by the answers about other clusters."""
    size = sum(band.right + band.wrong + band.unreviewed for band in bands)
    wrong = sum(band.wrong + band.unreviewed * _rate(band, scale) for band in bands)
    return 1 - wrong / size if size else None


def first_sample(bands: Sequence[Band], min_purity: float, confidence: float) -> int:
    """The smallest sample that proves the purity if no answer is no."""
    size = sum(band.right + band.wrong + band.unreviewed for band in bands)
    case = _Case(0, size, 0, size, 0, 0, 0)
    return int(_needed_samples(np.array([case], np.float64), min_purity, confidence)[0])


def _pilot(bands: Sequence[Band], plan: Plan, min_purity: float, confidence: float) -> Plan:
    """Begins with a random sample: what the model expects is no evidence yet."""
    sampled = sum(band.sampled for band in bands)
    unreviewed = sum(band.unreviewed for band in bands)
    if sampled >= PILOT or not plan.answers or not unreviewed:
        return plan
    missing = min(PILOT, first_sample(bands, min_purity, confidence)) - sampled
    if missing <= 0:
        return plan
    return plan._replace(sample=min(missing, unreviewed), bands=0)


def _cases(bands: Sequence[Band], scale: float) -> list[_Case]:
    right, wrong = sum(band.right for band in bands), sum(band.wrong for band in bands)
    unreviewed = [band.unreviewed for band in bands]
    expected = [band.unreviewed * _rate(band, scale) for band in bands]
    cases = []
    for closed in range(len(bands) + 1):
        found = evidence(bands[closed:])
        left, seen = found.unreviewed, sum(unreviewed[:closed])
        size = right + wrong + seen + left - sum(expected[:closed])
        rate = sum(expected[closed:]) / left if left else 0.0
        cases.append(_Case(seen, size, wrong, left, found.sampled, found.wrong, rate))
    return cases


def _rate(band: Band, scale: float) -> float:
    expected = min(band.doubt * scale, 1.0)
    return (band.sampled_wrong + _PRIOR * expected) / (band.sampled + _PRIOR)


def _needed_samples(cases: Floats, min_purity: float, confidence: float) -> Floats:
    """The smallest sample of the unreviewed images of each case that proves the purity if the
    expected share of it is wrong; all of them if none does."""
    _, size, wrong, unreviewed, sampled, sampled_wrong, rate = cases.T

    def proven(more: Floats) -> npt.NDArray[np.bool_]:
        found = sampled_wrong + rate * more
        high = most_wrong(unreviewed - more, sampled + more, found, confidence)
        allowed = (1 - min_purity) * (size - rate * more) + ROUNDING * size
        enough: npt.NDArray[np.bool_] = wrong + high <= allowed
        return enough

    low, high = np.zeros_like(unreviewed), unreviewed.copy()
    high = np.where(proven(low), 0.0, high)
    while np.any(low < high):
        middle = np.floor((low + high) / 2)
        enough = proven(middle)
        high = np.where(enough, np.minimum(high, middle), high)
        low = np.where(enough, low, np.minimum(middle + 1, high))
    return high
