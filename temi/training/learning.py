"""Clusters of a training that continue those of an earlier one, or that labels are given for."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from temi.training.consensus import Probabilities, consensus_of, group_images
from temi.training.constraints import UNKNOWN, Constraints, Integers

_LABEL = 100  # images that agree about the number of a group as much as one label
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True, kw_only=True)
class FoundClusters:
    """The clusters of all images without what people said: the earlier ones, or those of the heads
    for images and clusters that are new."""

    clusters: Integers  # (N,)
    weights: npt.NDArray[np.float32]  # (N,): the probabilities of clusters that are new
    agreement: float  # of the heads with the clusters


def find_clusters(
    probabilities_of: Callable[[Tensor], Probabilities],
    sample: Tensor,
    n_images: int,
    constraints: Constraints,
    seed: int,
) -> FoundClusters:
    """Join the heads, whose probabilities for images are (H, n, C), in the clusters of a sample."""
    heads = probabilities_of(sample)
    numbers = _number_groups(heads, sample.numpy(), constraints, seed)
    known = np.flatnonzero(numbers >= 0)
    consensus = consensus_of(heads[:, known], numbers[known])
    continued = _used_before(constraints)
    clusters, weights = np.empty(n_images, np.int64), np.empty(n_images, np.float32)
    for block in torch.split(torch.arange(n_images), _ROWS_AT_A_TIME):
        probabilities = consensus.probabilities(probabilities_of(block))
        found, weight = probabilities.argmax(axis=1), probabilities.max(axis=1)
        if constraints.clusters is not None:  # heads may not tell a merged cluster from others
            before = constraints.clusters[block]
            kept = (before >= 0) & np.isin(found, continued)
            found, weight = np.where(kept, before, found), np.where(kept, 1.0, weight)
        clusters[block], weights[block] = found, weight
    return FoundClusters(clusters=clusters, weights=weights, agreement=consensus.agreement)


def _number_groups(
    heads: Probabilities, ids: Integers, constraints: Constraints, seed: int
) -> Integers:
    """Return the cluster of each image in ``ids``, given the heads' probabilities (H, n, C): (n,).

    Images stay in the cluster that they had. Clusters that had no image get the groups of the heads
    that are not like any earlier cluster; without earlier clusters, all are such groups.
    """
    n_clusters = heads.shape[2]
    labels = constraints.labels[ids]
    before = (
        np.full(len(ids), UNKNOWN) if constraints.clusters is None else constraints.clusters[ids]
    )
    if constraints.clusters is not None and len(_used(constraints)) == n_clusters:
        found = before
    else:
        groups = group_images(heads, seed)
        numbers = _match(groups, before, labels, n_clusters)
        new = np.isin(numbers, _used_before(constraints), invert=True)[groups]
        found = np.where(new | (before < 0), numbers[groups], before)
    return np.where(labels >= 0, labels, found)


def _used_before(constraints: Constraints) -> Integers:
    if constraints.clusters is None:
        return np.empty(0, dtype=np.int64)
    used = np.unique(constraints.clusters)
    return used[used >= 0]


def _used(constraints: Constraints) -> Integers:
    labels = constraints.labels[constraints.labels >= 0]
    return np.union1d(_used_before(constraints), labels)


def _match(groups: Integers, before: Integers, labels: Integers, n_clusters: int) -> Integers:
    """Return the number of each group: those whose images have most in common with it."""
    common = np.zeros((n_clusters, n_clusters), dtype=np.int64)
    for numbers, weight in ((before, 1), (labels, _LABEL)):
        known = np.flatnonzero(numbers >= 0)
        np.add.at(common, (groups[known], numbers[known]), weight)
    _, matched = linear_sum_assignment(common, maximize=True)
    return np.asarray(matched, dtype=np.int64)
