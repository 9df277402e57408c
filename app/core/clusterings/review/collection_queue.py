"""Which images are asked about next to prove the labels as a whole."""

import zlib
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from app.core.clusterings.review.collection_planning import CollectionPlan
from app.core.clusterings.review.order import Collection

_BLOCK = 100  # images of the random order that are finished before the next ones
_PARTS = 4  # of a block: labelers begin with different ones

Positions = npt.NDArray[np.int64]


def next_images(
    found: Collection, plan: CollectionPlan, limit: int, labeler: str | None
) -> tuple[list[str], list[str]]:
    """The ids of random images, and of the least sure ones, in the proportion of the plan."""
    unseen = found.unseen
    bands = found.order.bands[unseen]
    if plan.pilot:
        return _ids(found, _in_blocks(found, 0, labeler, min(limit, plan.pilot))), []
    doubtful = min(round(limit * plan.doubtful / max(plan.answers, 1)), plan.doubtful)
    if plan.doubtful and not plan.sample:
        doubtful = min(limit, plan.doubtful)
    below = unseen[bands < plan.band]
    least = below[np.argsort(found.order.probabilities[below], kind="stable")][:doubtful]
    drawn = _in_blocks(found, plan.band, labeler, min(limit - len(least), max(plan.sample, 1)))
    return _ids(found, drawn), _ids(found, least)


def _in_blocks(found: Collection, band: int, labeler: str | None, count: int) -> Positions:
    """Blocks begin at fixed places of the order, so that no image stays behind for long."""
    region = found.inside[found.order.bands[found.inside] >= band]
    seen = np.zeros(len(found.order.ids), bool)
    seen[found.inside[found.photos.seen]] = True
    first = zlib.crc32(labeler.encode()) % _PARTS if labeler else 0

    def blocks() -> Iterator[Positions]:
        missing, start = count, 0
        while missing > 0 and start < len(region):
            parts = np.array_split(region[start : start + _BLOCK], _PARTS)
            block = np.concatenate([*parts[first:], *parts[:first]])
            block = block[~seen[block]][:missing]
            yield block
            missing, start = missing - len(block), start + _BLOCK

    return np.concatenate([np.empty(0, np.int64), *blocks()])


def _ids(found: Collection, positions: Positions) -> list[str]:
    return [image_id.decode() for image_id in found.order.ids[positions].tolist()]
