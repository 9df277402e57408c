"""Splits images into training and validation by their content, the same way in every format."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

import numpy as np
import numpy.typing as npt

from app.core.clusterings.revisions import LabeledImage
from app.core.exports.classes import Classes

SplitName = Literal["train", "validation"]


@dataclass(frozen=True)
class Split:
    """An image is for validation if its hash is below the bound of its class. Images with the same
    bytes and class are on the same side."""

    seed: int = 0
    bounds: Mapping[int, int] = field(default_factory=dict)  # class id -> first hash for training

    def of(self, row: LabeledImage, class_id: int | None) -> SplitName | None:
        """None for an excluded image."""
        if class_id is None:
            return None
        if not self.bounds:
            return "train"
        return "validation" if _hash(self.seed, row) < self.bounds[class_id] else "train"

    @property
    def names(self) -> tuple[SplitName, ...]:
        return ("train", "validation") if self.bounds else ("train",)


def make_split(rows: Iterable[LabeledImage], classes: Classes, fraction: float, seed: int) -> Split:
    """Takes the fraction of each class; of a class with two images or more at least one, and not
    all. Needs about 30 bytes per image."""
    if fraction == 0:
        return Split(seed)
    hashes, class_ids = _hashes(rows, classes, seed)
    order = np.lexsort((hashes, class_ids))
    hashes, class_ids = hashes[order], class_ids[order]
    starts = np.searchsorted(class_ids, np.arange(len(classes.names) + 1))
    return Split(
        seed,
        {
            class_id: _bound(hashes[starts[class_id] : starts[class_id + 1]], fraction)
            for class_id in range(len(classes.names))
        },
    )


def _hashes(
    rows: Iterable[LabeledImage], classes: Classes, seed: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
    kept = (
        (_hash(seed, row), classes.ids[row.cluster_id])
        for row in rows
        if row.cluster_id is not None
    )
    found = np.fromiter(kept, dtype=[("hash", np.uint64), ("class_id", np.int32)])
    return found["hash"], found["class_id"]


def _bound(hashes: npt.NDArray[np.uint64], fraction: float) -> int:
    """The lowest hash for training."""
    count = len(hashes)
    if count < 2:
        return 0
    return int(hashes[min(count - 1, max(1, round(fraction * count)))])


def _hash(seed: int, row: LabeledImage) -> int:
    text = f"{seed}:{row.sha256}".encode()
    return int.from_bytes(blake2b(text, digest_size=8).digest())
