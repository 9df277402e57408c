"""Spreads what is known of some images over the graph of nearest neighbors to all others.

A few labels say little about a cluster as a whole, but much about the images beside them. Each
image passes its evidence for a cluster on to its neighbors, which pass on a part of it, and so on
(label spreading by Zhou et al., 2004). The clusters that were found without labels count as half a
label of an average cluster, shared by its images: they decide where no label is near.
"""

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.training.constraints import UNKNOWN, Constraints, Integers
from temi.training.learning import FoundClusters
from temi.training.smoothing import random_walk

# Chosen on five sets of photos (docs/quality.md).
GRAPH_NEIGHBORS = 20  # edges of an image in the graph
STEPS = 60
_SHARE = 0.95  # of its evidence that an image gets from its neighbors
_FOUND = 0.5  # the weight of a cluster that was found, in labels
_REFUSED = 0.3  # that of a cluster to which an image does not belong
_SHARPNESS = 1.5  # spread evidence is less certain than it is right
_COLUMNS = 32  # clusters at a time, to bound the memory

Weights = npt.NDArray[np.float32]


def propagate(
    pairs: npt.NDArray[np.integer],
    constraints: Constraints,
    found: FoundClusters,
    n_clusters: int,
    ids: Integers,
) -> Weights:
    """Return the probabilities of the images ``ids``, in ascending order: (n, C).

    ``pairs`` (N, k) are the nearest neighbors, ``found`` the clusters without labels.
    """
    beside = random_walk(pairs[:, :GRAPH_NEIGHBORS])
    seeds = _Seeds(constraints, found, n_clusters)
    evidence = np.empty((len(ids), n_clusters), dtype=np.float32)
    with threadpool_limits(limits=1):
        for start in range(0, n_clusters, _COLUMNS):
            first = seeds.columns(start, min(start + _COLUMNS, n_clusters))
            block = first
            for _ in range(STEPS):
                block = (1 - _SHARE) * first + _SHARE * (beside @ block)
            np.maximum(block, 0.0, out=block)
            # The number of labels says nothing of the size: who reviews does not draw at random.
            total = np.maximum(block.sum(axis=0, dtype=np.float64), 1e-12)
            sizes = seeds.sizes[start : start + _COLUMNS]
            evidence[:, start : start + _COLUMNS] = block[ids] * (sizes / total)
    probabilities = _normalize(_normalize(evidence) ** _SHARPNESS)
    constraints.allow(ids, probabilities)
    return probabilities


class _Seeds:
    """The evidence of each image for each cluster before it is spread."""

    def __init__(self, constraints: Constraints, found: FoundClusters, n_clusters: int) -> None:
        self._labeled = np.flatnonzero(constraints.labels >= 0)
        self._labels = constraints.labels[self._labeled]
        self._refused = constraints.refused
        self._found = found.clusters
        self._weights = np.where(constraints.labels == UNKNOWN, found.weights, np.float32(0))
        self._weights[self._refused[:, 0]] = 0.0
        totals = np.bincount(self._found, weights=self._weights, minlength=n_clusters)
        mean = max(float(totals.mean()), 1e-12)
        self._weights *= np.float32(_FOUND / mean)
        counts = np.bincount(self._labels, minlength=n_clusters)
        # (C,): a cluster without labels is as large as before, others are taken as equal.
        self.sizes = (_FOUND * totals / mean + counts) / (_FOUND + counts)

    def columns(self, start: int, stop: int) -> Weights:
        """Of the clusters from ``start`` to ``stop``: (N, stop - start)."""
        seeds = np.zeros((len(self._found), stop - start), dtype=np.float32)
        here = np.flatnonzero((self._found >= start) & (self._found < stop))
        seeds[here, self._found[here] - start] = self._weights[here]
        image, cluster = self._refused.T
        here = np.flatnonzero((cluster >= start) & (cluster < stop))
        seeds[image[here], cluster[here] - start] = -_REFUSED
        here = np.flatnonzero((self._labels >= start) & (self._labels < stop))
        seeds[self._labeled[here], self._labels[here] - start] = 1.0
        return seeds


def _normalize(evidence: Weights) -> Weights:
    """Rows without any evidence get the same for all clusters."""
    totals = evidence.sum(axis=1, keepdims=True)
    even = np.full_like(evidence, 1.0 / evidence.shape[1])
    np.divide(evidence, totals, out=even, where=totals > 0)
    return even
