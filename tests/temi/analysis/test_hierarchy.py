"""Ward's merges of weighted clusters, against a slow version."""

import time
from itertools import chain, combinations, pairwise

import numpy as np
import numpy.typing as npt
import pytest
from scipy.cluster.hierarchy import linkage

from temi.analysis.hierarchy import Merge, cut, merge_tree
from temi.errors import TemiError

Means = npt.NDArray[np.float64]


def random_clusters(seed: int, count: int = 25) -> tuple[Means, npt.NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 4)), rng.integers(1, 60, size=count)


def slow_merges(means: Means, sizes: npt.NDArray[np.int64]) -> list[Merge]:
    """Computes the means of the joined clusters, and all costs before each merge."""
    left = {i: (means[i], float(sizes[i])) for i in range(len(means))}
    found = []
    while len(left) > 1:

        def cost(pair: tuple[int, int]) -> float:
            (a, n), (b, m) = (left[number] for number in pair)
            return float(n * m / (n + m) * np.square(a - b).sum())

        first, second = min(combinations(sorted(left), 2), key=cost)
        found.append(Merge(first, second, cost((first, second))))
        (a, n), (b, m) = left[first], left.pop(second)
        left[first] = (n * a + m * b) / (n + m), n + m
    return found


@pytest.mark.parametrize("seed", range(5))
def test_the_merges_are_those_of_a_slow_version(seed: int) -> None:
    means, sizes = random_clusters(seed)
    found, expected = merge_tree(means, sizes), slow_merges(means, sizes)
    assert [merge[:2] for merge in found] == [merge[:2] for merge in expected]
    assert [merge.cost for merge in found] == pytest.approx([merge.cost for merge in expected])


def test_clusters_of_one_image_are_joined_as_by_scipy() -> None:
    means, _ = random_clusters(9)
    costs = [merge.cost for merge in merge_tree(means, np.ones(len(means), dtype=int))]
    assert costs == pytest.approx(np.square(linkage(means, "ward")[:, 2]) / 2)


def test_the_costs_never_fall_and_sum_to_the_spread() -> None:
    means, sizes = random_clusters(7)
    costs = [merge.cost for merge in merge_tree(means, sizes)]
    assert all(a <= b + 1e-9 for a, b in pairwise(costs))
    middle = np.average(means, axis=0, weights=sizes)
    spread = float((sizes * np.square(means - middle).sum(axis=1)).sum())
    assert sum(costs) == pytest.approx(spread)


def test_a_large_cluster_is_joined_later_than_small_ones() -> None:
    means = np.array([[0.0], [1.0], [2.5], [3.6]])
    assert merge_tree(means, [1, 1, 1, 1])[0][:2] == (0, 1)
    assert merge_tree(means, [50, 50, 1, 1])[0][:2] == (2, 3)


def test_equal_costs_are_in_the_order_of_the_numbers() -> None:
    found = merge_tree(np.eye(4), [1, 1, 1, 1])
    assert [merge[:2] for merge in found] == [(0, 1), (0, 2), (0, 3)]
    same = merge_tree(np.ones((3, 2)), [5, 1, 2])
    assert same == [(0, 1, 0.0), (0, 2, 0.0)]


def test_groups_of_every_level_are_nested() -> None:
    means, sizes = random_clusters(3)
    count, merges = len(means), merge_tree(means, sizes)
    assert cut(merges, count, count) == [[number] for number in range(count)]
    assert cut(merges, count, 1) == [list(range(count))]
    for level in range(1, count):
        coarse, fine = (cut(merges, count, n) for n in (level, level + 1))
        assert (len(coarse), len(fine)) == (level, level + 1)
        assert sorted(chain.from_iterable(coarse)) == list(range(count))
        assert all(any(set(few) <= set(many) for many in coarse) for few in fine)


def test_one_cluster_and_none() -> None:
    assert merge_tree(np.ones((1, 3)), [4]) == []
    assert cut([], 1, 1) == [[0]]
    assert merge_tree(np.ones((0, 3)), []) == []


@pytest.mark.parametrize("sizes", [[1, 0], [1, -2], [1], [[1, 1]]])
def test_sizes_that_do_not_fit(sizes: list[int]) -> None:
    with pytest.raises(TemiError, match="a size above 0"):
        merge_tree(np.eye(2), sizes)


@pytest.mark.parametrize("n_groups", [0, 3])
def test_numbers_of_groups_that_there_are_not(n_groups: int) -> None:
    with pytest.raises(TemiError, match=f"no {n_groups} groups"):
        cut(merge_tree(np.eye(2), [1, 1]), 2, n_groups)


def test_a_thousand_clusters_take_seconds() -> None:
    rng = np.random.default_rng(0)
    started = time.process_time()
    merges = merge_tree(rng.normal(size=(1000, 256)), rng.integers(1, 100, size=1000))
    assert len(merges) == 999
    assert time.process_time() - started < 20  # of a busy machine; 0.5 of an idle one
