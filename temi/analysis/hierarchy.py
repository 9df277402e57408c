"""Coarser groups of clusters: similar clusters are joined step by step, by Ward's criterion."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from temi.errors import TemiError


class Merge(NamedTuple):
    """Cluster `second` joins cluster `first`, the lower number, which stands for both."""

    first: int
    second: int
    cost: float  # what the sum of squared distances of images to their means grows by


def merge_tree(
    means: npt.NDArray[np.floating], sizes: npt.NDArray[np.integer] | Sequence[int]
) -> list[Merge]:
    """Return the C - 1 merges of clusters with these means (C, D) and sizes (C,), in order.

    Each joins the two clusters with the lowest cost n_a n_b / (n_a + n_b) * |mean_a - mean_b|^2;
    of equal costs the lowest numbers are first. scipy's linkage cannot weigh points by sizes.
    """
    points = np.asarray(means, dtype=np.float64)
    weights = np.array(sizes, dtype=np.float64)
    if points.ndim != 2 or weights.shape != (len(points),) or (weights <= 0).any():
        raise TemiError("a merge tree needs a mean and a size above 0 for each cluster")
    costs = _pair_costs(points, weights)
    best = costs.min(axis=1, initial=np.inf)  # of each row: the whole matrix is not searched
    merges: list[Merge] = []
    for _ in range(len(points) - 1):
        first = int(best.argmin())
        second = int(costs[first].argmin())
        cost = float(costs[first, second])
        merges.append(Merge(first, second, cost))
        joined = _joined_costs(costs, weights, first, second)
        nearest_of = (best == costs[:, first]) | (best == costs[:, second])
        stale = np.flatnonzero(nearest_of & np.isfinite(best))
        costs[first], costs[:, first] = joined, joined
        costs[second], costs[:, second] = np.inf, np.inf
        weights[first] += weights[second]
        best = np.minimum(best, joined)
        best[stale] = costs[stale].min(axis=1)
        best[[first, second]] = joined.min(), np.inf
    return merges


def cut(merges: Sequence[Merge], n_clusters: int, n_groups: int) -> list[list[int]]:
    """Return the clusters of each group when so many groups are left.

    Groups of fewer are unions of groups of more. Both levels are in the order of the numbers.
    """
    if not 1 <= n_groups <= n_clusters or len(merges) != n_clusters - 1:
        raise TemiError(
            f"{n_clusters} clusters with {len(merges)} merges have no {n_groups} groups"
        )
    groups = {number: [number] for number in range(n_clusters)}
    for merge in merges[: n_clusters - n_groups]:
        groups[merge.first] += groups.pop(merge.second)
    return [sorted(members) for members in groups.values()]


def _pair_costs(
    points: npt.NDArray[np.float64], weights: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the cost of joining each two clusters: (C, C), infinite on the diagonal."""
    costs = np.full((len(points), len(points)), np.inf)
    for number in range(len(points) - 1):
        # By differences: with products of the means, equal ones would not cost exactly nothing.
        steps = points[number + 1 :] - points[number]
        squares = np.einsum("nd,nd->n", steps, steps)
        others = weights[number + 1 :]
        row = squares * (weights[number] * others / (weights[number] + others))
        costs[number, number + 1 :] = costs[number + 1 :, number] = row
    return costs


def _joined_costs(
    costs: npt.NDArray[np.float64], weights: npt.NDArray[np.float64], first: int, second: int
) -> npt.NDArray[np.float64]:
    """Return the costs of joining the union of two clusters with each other one: (C,).

    They follow from the costs of the two (the formula of Lance and Williams), without the means.
    """
    a, b = weights[first], weights[second]
    grown = (a + weights) * costs[first] + (b + weights) * costs[second]
    grown -= weights * costs[first, second]
    joined: npt.NDArray[np.float64] = np.maximum(grown / (a + b + weights), 0.0)
    joined[[first, second]] = np.inf
    return joined
