"""What is left to review until the labels as a whole are proven to be pure enough.

A plan leaves the photos below a band out, as far as the target allows, reviews the others below it,
the least sure first, and draws a random sample of those above. The band is chosen so that the
fewest answers are expected.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from app.core.clusterings.review.collection import Ordered, Region, errors_of, regions_of
from app.core.clusterings.review.planning import MIN_PURITY
from app.core.clusterings.review.purity import CONFIDENCE, ROUNDING
from app.core.clusterings.review.sequence import wrong_in_collection

TARGET = 0.95  # share of the collection
PILOT = 50  # random answers, of all photos, after which the rates of the bands are worth a plan
_PRIOR = 4.0  # answers that the expectation of a band counts for
_STEPS = 24  # of a sample between none and all photos

Floats = npt.NDArray[np.float64]


class CollectionPlan(NamedTuple):
    band: int  # the sample is drawn from it and those above
    sample: int  # more answers to random photos
    doubtful: int  # more answers to the least sure photos below the band
    images: int  # that can be exported then
    pilot: int = 0  # answers to random photos of all bands that come first

    @property
    def answers(self) -> int:
        return max(self.sample + self.doubtful, self.pilot)


def plan_collection(
    photos: Ordered,
    allowed: int,
    *,
    min_purity: float = MIN_PURITY,
    confidence: float = CONFIDENCE,
) -> CollectionPlan:
    """`allowed`: how many unseen photos may be left out."""
    regions = regions_of(photos)
    unseen, rates = _unseen_rates(photos)
    errors = errors_of(len(regions), confidence)
    plans = []
    for region, error in zip(regions, errors, strict=True):
        below = int(unseen[: region.band].sum())
        doubtful = max(below - allowed, 0)
        inside = unseen[region.band :]
        rate = float(inside @ rates[region.band :]) / max(float(inside.sum()), 1.0)
        images = region.unseen + photos.confirmed + doubtful
        sample = _needed(region, rate, images, float(error), min_purity)
        plans.append(CollectionPlan(region.band, sample, doubtful, images))
    return _pilot(regions, min(plans, key=lambda plan: plan.answers))


def expected_purity(photos: Ordered, band: int) -> float | None:
    """Of the selection from the band upwards, by the model and the answers."""
    unseen, rates = _unseen_rates(photos)
    images = float(unseen[band:].sum()) + photos.confirmed
    return 1 - float(unseen[band:] @ rates[band:]) / images if images else None


def _pilot(regions: Sequence[Region], plan: CollectionPlan) -> CollectionPlan:
    """Begins with photos of all bands: what the model expects is no evidence yet."""
    everything = regions[0]
    missing = min(PILOT - everything.drawn, everything.unseen)
    return plan._replace(pilot=missing) if missing > 0 and plan.answers else plan


def _unseen_rates(photos: Ordered) -> tuple[Floats, Floats]:
    """By band: the unseen photos, and the share of wrong ones that is expected among them."""
    count = len(photos.doubts)

    def by_band(mask: npt.NDArray[np.bool_]) -> Floats:
        return np.bincount(photos.bands[mask], minlength=count).astype(np.float64)

    seen, wrong = by_band(photos.seen), by_band(photos.wrong)
    scale = (wrong.sum() + _PRIOR) / (float(seen @ photos.doubts) + _PRIOR)
    expected = np.minimum(photos.doubts * scale, 1.0)
    return by_band(~photos.seen), (wrong + _PRIOR * expected) / (seen + _PRIOR)


def _needed(region: Region, rate: float, images: int, error: float, min_purity: float) -> int:
    """The smallest sample that proves the purity if the expected share of it is wrong; all unseen
    photos if none does."""
    low, high = -1, region.unseen
    while high - low > 1:
        some = np.unique(np.linspace(low, high, _STEPS).astype(np.int64)[1:-1])
        some = some[(some > low) & (some < high)]
        proven = _proven(region, some.astype(np.float64), rate, images, error, min_purity)
        first = int(np.argmax(proven)) if proven.any() else len(some)
        low = int(some[first - 1]) if first else low
        high = int(some[first]) if first < len(some) else high
    return high


def _proven(
    region: Region, more: Floats, rate: float, images: int, error: float, min_purity: float
) -> npt.NDArray[np.bool_]:
    # Photos of the order that people have seen already come for nothing.
    step = (region.size - region.drawn) / max(region.unseen, 1)
    ahead = (region.found - region.drawn_wrong) / max(region.unseen, 1)
    drawn = np.minimum(region.drawn + np.floor(more * step), region.size)
    wrong = np.minimum(region.drawn_wrong + more * (rate + ahead), drawn)
    high = wrong_in_collection(region.size, drawn, wrong, error).high
    left = np.clip(high - region.found - more * rate, 0, region.unseen)
    enough: npt.NDArray[np.bool_] = left <= (1 - min_purity) * images + ROUNDING * images
    return np.asarray(enough & (drawn > 0) | (more >= region.unseen), np.bool_)
