"""The purity of a cluster with a confidence interval.

Images that people have seen are counted; only the unseen ones are estimated, from the answers to
a random sample of the same cluster. The interval for the wrong ones among the unseen is that of
Clopper and Pearson with the effective size of a stratified sample (Korn and Graubard), narrowed
for a finite number of images: a cluster of which every image was seen has no uncertainty left.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.95
ROUNDING = 1e-9
_SMALLEST = 1e-6  # of a parameter of the beta distribution


@dataclass(frozen=True, kw_only=True)
class Band:
    """The images of a cluster in one band of probabilities."""

    right: int = 0  # in the cluster, and people say so
    wrong: int = 0  # still in the cluster, although people say they do not belong to it
    unreviewed: int = 0
    sampled: int = 0  # answers to the random sample, also of images that were moved away since
    sampled_wrong: int = 0
    chosen: int = 0  # answers to images that were chosen because they are doubtful
    chosen_wrong: int = 0
    doubt: float = 0.0  # share of wrong ones among the unreviewed, as the model expects


class Purity(NamedTuple):
    estimate: float
    lower: float
    upper: float

    def reaches(self, min_purity: float) -> bool:
        return self.lower >= min_purity - ROUNDING


class Evidence(NamedTuple):
    """A stratified sample of unreviewed images as a simple one of the same precision."""

    unreviewed: int
    sampled: float
    wrong: float


def purity_of(bands: Sequence[Band], confidence: float = CONFIDENCE) -> Purity | None:
    """None if the cluster is empty, or if no answer tells anything about its unseen images."""
    right, wrong = sum(band.right for band in bands), sum(band.wrong for band in bands)
    found = evidence(bands)
    size = right + wrong + found.unreviewed
    if not size or (found.unreviewed and not found.sampled):
        return None
    _, high = wrong_bounds(found.unreviewed, found.sampled, found.wrong, confidence)
    low, expected = _left(bands, found, confidence)
    return Purity(
        estimate=1 - (wrong + expected) / size,
        lower=1 - (wrong + float(high)) / size,
        upper=1 - (wrong + low) / size,
    )


def _left(bands: Sequence[Band], found: Evidence, confidence: float) -> tuple[float, float]:
    """The lowest and the expected number of wrong images that are left, once doubtful ones were
    chosen and seen: the sample tells how many there were, and those that were found are gone. (The
    highest number makes no use of it: the images that are left are the better ones.)"""
    if not found.unreviewed:
        return 0.0, 0.0
    strata = [band for band in bands if band.unreviewed]
    before = found.unreviewed + sum(band.chosen for band in strata)
    gone = sum(band.chosen_wrong for band in strata)
    low, _ = wrong_bounds(before, found.sampled, found.wrong, confidence)
    fewest = float(np.clip(low - gone, 0, found.unreviewed))
    rate = found.wrong / found.sampled
    return fewest, float(np.clip(before * rate - gone, fewest, found.unreviewed * rate))


def evidence(bands: Sequence[Band]) -> Evidence:
    """Weighs the sample of each band by its unreviewed images. Bands without any left tell
    nothing about the others and count no more."""
    strata = _joined([band for band in bands if band.unreviewed])
    unreviewed = sum(band.unreviewed for band in strata)
    if not strata or not all(band.sampled for band in strata):
        return Evidence(unreviewed, 0.0, 0.0)
    weights = np.array([band.unreviewed for band in strata]) / unreviewed
    sampled = np.array([band.sampled for band in strata])
    rate = float(weights @ (np.array([band.sampled_wrong for band in strata]) / sampled))
    size = 1 / float(weights**2 @ (1 / sampled))  # Kish's effective size
    return Evidence(unreviewed, size, rate * size)


def wrong_bounds(
    unreviewed: npt.ArrayLike, sampled: npt.ArrayLike, wrong: npt.ArrayLike, confidence: float
) -> tuple[Floats, Floats]:
    """Bounds for the number of wrong images among the unreviewed ones."""
    tail = (1 - confidence) / 2
    count, n, k = (np.asarray(values, np.float64) for values in (unreviewed, sampled, wrong))
    low = np.where(k > 0, np.floor(_beta_binomial_quantile(count, k, n - k + 1, tail)), 0.0)
    return low, most_wrong(count, n, k, confidence)


def most_wrong(unreviewed: Floats, sampled: Floats, wrong: Floats, confidence: float) -> Floats:
    """The upper one of the bounds."""
    right, tail = sampled - wrong, (1 - confidence) / 2
    high = _beta_binomial_quantile(unreviewed, wrong + 1, right, 1 - tail)
    return np.where(right > 0, high, unreviewed)


def _beta_binomial_quantile(count: Floats, a: Floats, b: Floats, probability: float) -> Floats:
    """A beta distribution with the same mean and variance, times the count: closed, and smooth in
    sample sizes that are no integers."""
    from scipy.special import betaincinv  # loads a hundred modules, to review only

    a, b = np.maximum(a, _SMALLEST), np.maximum(b, _SMALLEST)
    total = a + b
    narrowed = np.maximum(total * (count - 1) / np.maximum(count + total, 1), _SMALLEST)
    share = a / total
    found: Floats = count * betaincinv(share * narrowed, (1 - share) * narrowed, probability)
    return found


def _joined(bands: Sequence[Band]) -> list[Band]:
    """Joins a band without a sample with a neighbor, as strata of a survey are collapsed."""
    joined: list[Band] = []
    for band in bands:
        if joined and not (joined[-1].sampled and band.sampled):
            joined[-1] = _sum(joined[-1], band)
        else:
            joined.append(band)
    return joined


def _sum(one: Band, other: Band) -> Band:
    return Band(
        unreviewed=one.unreviewed + other.unreviewed,
        sampled=one.sampled + other.sampled,
        sampled_wrong=one.sampled_wrong + other.sampled_wrong,
    )
