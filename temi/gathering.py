"""Gathering: groups of similar images among those that a model has refused.

Average linkage on cosine distances: two sets of images are joined as long as the mean distance
between them is at most a radius. The radius is a distance at which the model calls an image novel:
images of a group are as near to each other as images of the training are to their nearest one.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError
from temi.novelty import NoveltyDetector, exact_units
from temi.standardize import chunks

FALSE_ALARM_RATE = 0.01  # one in a hundred training images is farther from its nearest one
MIN_IMAGES = 5  # of a group; fewer may be alike by chance
_DECIMALS = 9  # the last digits depend on the kind of processor
_CHUNK = 512

Numbers = npt.NDArray[np.float64]


class Gathered(NamedTuple):
    rows: npt.NDArray[np.int64]  # (M,), the most typical image first
    center: Numbers  # (D,), the mean of the images' features at length one
    tightness: float  # mean cosine of two images


def gathering_radius(detector: NoveltyDetector) -> float:
    """The distance beyond which an image is novel at a false alarm rate of 1 %."""
    return detector.distance_at(1 - FALSE_ALARM_RATE)


def gather(
    features: npt.NDArray[np.floating], radius: float, *, min_images: int = MIN_IMAGES
) -> list[Gathered]:
    """Group rows of features (N, D); the largest group first. Rows without a group are left out.

    The groups depend on the features and, if distances are equal, on the order of the rows.
    """
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    if len(features) < max(2, min_images):
        return []
    from scipy.cluster.hierarchy import fcluster, linkage  # takes a while to load

    units = exact_units(features)
    tree = linkage(_distances(units), "average")
    label = fcluster(tree, radius, "distance")  # (N,), from 1
    members = (np.flatnonzero(label == number) for number in range(1, int(label.max()) + 1))
    groups = [_describe(units, rows) for rows in members if len(rows) >= min_images]
    return sorted(groups, key=lambda group: (-len(group.rows), int(group.rows.min())))


def center_of(features: npt.NDArray[np.floating]) -> Numbers:
    """The mean of the rows (N, D) at length one: (D,). It is not of length one itself."""
    center: Numbers = exact_units(features).mean(axis=0)
    return center


def center_distances(features: npt.NDArray[np.floating]) -> list[float]:
    """The cosine distance of each row (N, D) to the center of all."""
    center = center_of(features)[None]
    cosines = exact_units(features) @ exact_units(center)[0]
    return [round(1.0 - cosine, _DECIMALS) for cosine in cosines.tolist()]


def mean_distance(center: Numbers, other: Numbers) -> float:
    """The mean cosine distance between the images of two groups, by their centers."""
    return float(np.round(1.0 - center @ other, _DECIMALS))


def _describe(units: Numbers, rows: npt.NDArray[np.intp]) -> Gathered:
    found, count = units[rows], len(rows)
    center = found.mean(axis=0)
    likeness = np.round(found @ center, _DECIMALS)
    typical = rows[np.argsort(-likeness, kind="stable")].astype(np.int64)
    # The square of the mean has all pairs, also each image with itself, whose cosine is 1.
    pairs = (count * float(center @ center) - 1) / (count - 1)
    return Gathered(typical, center, round(pairs, 6))


def _distances(units: Numbers) -> Numbers:
    """Cosine distances of all pairs, in the order of scipy: (N * (N - 1) / 2,)."""
    count, start = len(units), 0
    found = np.empty(count * (count - 1) // 2)
    for rows in chunks(count, _CHUNK):
        block = 1.0 - units[rows] @ units.T  # (chunk, N)
        for offset, row in enumerate(range(count)[rows]):
            part = block[offset, row + 1 :]
            found[start : start + len(part)] = part
            start += len(part)
    distances: Numbers = np.round(found, _DECIMALS).clip(min=0.0)
    return distances
