"""The purity of the labels as a whole: of all photos that would be exported together.

The photos are in a random order that was fixed before any answer, and in bands of the model's
probability. A selection has all photos from a band upwards that people have not seen, and all that
they have confirmed. For each such selection, the sample is the beginning of the random order up to
the first photo without an answer; what else people have seen is counted. Which selection to take is
decided by the answers, so the error of the intervals is shared by all of them, with fixed weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.clusterings.review.purity import CONFIDENCE, Purity
from app.core.clusterings.review.sequence import wrong_in_collection

# Of the error: of all photos, without the least sure band, and without the least sure two. The
# other selections share the rest.
_WEIGHTS = (0.1, 0.4, 0.2)

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, kw_only=True)
class Ordered:
    """The photos to prove, in their random order. What people placed or answered before is no part
    of it."""

    bands: npt.NDArray[np.uint8]  # 0 is the least sure
    seen: Bools
    wrong: Bools  # of those seen: was not in the cluster that it belongs to
    doubts: npt.NDArray[np.float64]  # by band: the share of wrong photos that the model expects
    confirmed: int = 0  # photos with a label that people have seen and that is right now


@dataclass(frozen=True, kw_only=True)
class Region:
    """The photos from a band upwards."""

    band: int
    size: int
    drawn: int  # of the random order, without a gap
    drawn_wrong: int
    seen: int
    found: int  # wrong photos that people found in any way

    @property
    def unseen(self) -> int:
        return self.size - self.seen


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What can be exported together."""

    region: Region
    images: int  # unseen photos of the region, and all confirmed ones
    purity: Purity | None  # None if it is empty, or if the sample is


def regions_of(photos: Ordered) -> list[Region]:
    """From all photos to the band of the surest."""
    found = []
    for band in range(len(photos.doubts)):
        inside = photos.bands >= band
        seen, wrong = photos.seen[inside], photos.wrong[inside]
        drawn = len(seen) if seen.all() else int(np.argmin(seen))
        found.append(
            Region(
                band=band,
                size=len(seen),
                drawn=drawn,
                drawn_wrong=int(wrong[:drawn].sum()),
                seen=int(seen.sum()),
                found=int(wrong.sum()),
            )
        )
    return found


def errors_of(count: int, confidence: float = CONFIDENCE) -> npt.NDArray[np.float64]:
    """The probability with which the interval of each of so many selections may fail."""
    weights = np.zeros(count)
    first = _WEIGHTS[:count]
    weights[: len(first)] = first
    if count > len(first):
        weights[len(first) :] = (1 - sum(first)) / (count - len(first))
    return np.asarray((1 - confidence) * weights / weights.sum(), np.float64)


def selections_of(
    regions: Sequence[Region], confirmed: int, confidence: float = CONFIDENCE
) -> list[Selection]:
    """The intervals of all of them hold together, at every moment of the review."""
    low, high = wrong_in_collection(
        [one.size for one in regions],
        [one.drawn for one in regions],
        [one.drawn_wrong for one in regions],
        errors_of(len(regions), confidence),
    )
    return [
        _selection(one, confirmed, int(fewest), int(most))
        for one, fewest, most in zip(regions, low, high, strict=True)
    ]


def _selection(region: Region, confirmed: int, fewest: int, most: int) -> Selection:
    images = region.unseen + confirmed
    if not images or (region.unseen and not region.drawn):
        return Selection(region=region, images=images, purity=None)
    left = np.clip([fewest - region.found, most - region.found], 0, region.unseen)
    rate = region.drawn_wrong / max(region.drawn, 1)
    # Doubtful photos that were asked about first are gone: the others are better than the sample.
    expected = min(region.size * rate - region.found, region.unseen * rate)
    expected = float(np.clip(expected, *left))
    purity = Purity(1 - expected / images, 1 - left[1] / images, 1 - left[0] / images)
    return Selection(region=region, images=images, purity=purity)


def best_selection(selections: Sequence[Selection], min_purity: float) -> Selection | None:
    """The one with most photos that is proven to be pure enough."""
    proven = [one for one in selections if one.purity and one.purity.reaches(min_purity)]
    return max(proven, key=lambda one: one.images, default=None)
