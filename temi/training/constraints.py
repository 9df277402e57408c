"""What is known of the clusters of some images before a training: the labels that people gave."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from temi.config import TrainConfig
from temi.errors import InvalidConfig, TemiError

UNKNOWN = -1  # nothing is known of the image
OUTSIDE = -2  # the image belongs to none of the clusters

Integers = npt.NDArray[np.int64]


def _no_pairs() -> Integers:
    return np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """Arrays in the order of the features.

    ``clusters`` are those of an earlier clustering, which the new ones continue: cluster c of the
    model is what cluster c was. Without them, labels alone give the clusters their numbers.
    """

    labels: Integers  # (N,): the cluster of an image, UNKNOWN or OUTSIDE
    clusters: Integers | None = None  # (N,): the cluster until now, or UNKNOWN
    # (M, 2): an image, and a cluster to which it does not belong
    refused: Integers = field(default_factory=_no_pairs)

    @classmethod
    def of_labels(cls, labels: npt.ArrayLike) -> "Constraints":
        return cls(labels=np.asarray(labels))

    def check(self, n_images: int, config: TrainConfig) -> None:
        """Raise an error unless they fit a training of so many images with these settings."""
        n_clusters = config.n_clusters
        if config.select != "consensus":
            raise InvalidConfig("select", "must be consensus to learn from labels")
        _check("labels", self.labels, n_images, range(OUTSIDE, n_clusters))
        if self.clusters is not None:
            _check("clusters", self.clusters, n_images, range(UNKNOWN, n_clusters))
        if self.refused.ndim != 2 or self.refused.shape[1] != 2:
            raise TemiError(f"refused must have shape (M, 2), not {self.refused.shape}")
        _check("refused", self.refused[:, 0], len(self.refused), range(n_images))
        _check("refused", self.refused[:, 1], len(self.refused), range(n_clusters))

    def with_labels(self, ids: Integers) -> Integers:
        """Return these images and as many that have a label, without those outside of all
        clusters, in ascending order."""
        labeled = np.flatnonzero(self.labels >= 0)
        step = -(-len(labeled) // len(ids)) or 1
        wanted = np.union1d(ids, labeled[::step])
        return np.asarray(wanted[self.labels[wanted] != OUTSIDE], dtype=np.int64)

    def allow(self, ids: Integers, probabilities: npt.NDArray[np.float32]) -> None:
        """Change the probabilities (n, C) of these images, in ascending order, to what is known."""
        labels = self.labels[ids]
        known = np.flatnonzero(labels >= 0)
        place = np.searchsorted(ids, self.refused[:, 0])
        found = np.flatnonzero(ids[np.minimum(place, len(ids) - 1)] == self.refused[:, 0])
        refused = place[found], self.refused[found, 1]
        probabilities[refused] = 0.0
        probabilities[known] = 0.0
        probabilities[known, labels[known]] = 1.0
        empty = probabilities.sum(axis=1) == 0  # all evidence was for refused clusters
        probabilities[empty] = 1.0
        probabilities[refused] = np.where(empty[refused[0]], 0.0, probabilities[refused])
        probabilities[probabilities.sum(axis=1) == 0] = 1.0  # all clusters were refused
        probabilities /= probabilities.sum(axis=1, keepdims=True)


def _check(name: str, values: npt.NDArray[np.integer], count: int, allowed: range) -> None:
    if values.shape != (count,) or values.dtype.kind not in "iu":
        raise TemiError(
            f"{name} must be whole numbers of shape ({count},), not {values.dtype} {values.shape}"
        )
    wrong = (values < allowed.start) | (values >= allowed.stop)
    if wrong.any():
        found = int(values[wrong][0])
        raise TemiError(
            f"{name} must be from {allowed.start} to {allowed.stop - 1}, but one is {found}"
        )
