"""Agreement from counts equals that of scipy and scikit-learn from the images."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from app.core.clusterings.agreement import Overlap

Clusters = npt.NDArray[np.int64]


def _overlap(left: Clusters, right: Clusters) -> Overlap:
    pairs, count = np.unique(np.stack([left, right]), axis=1, return_counts=True)
    return Overlap(pairs[0], pairs[1], count.astype(np.int64))


def _best(left: Clusters, right: Clusters) -> int:
    """Images of the best matching, from the dense table."""
    table = np.zeros((left.max() + 1, right.max() + 1), dtype=np.int64)
    np.add.at(table, (left, right), 1)
    return int(table[linear_sum_assignment(table, maximize=True)].sum())


@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=60),
)
def test_the_scores_are_those_of_the_libraries(places: list[tuple[int, int]]) -> None:
    left, right = np.array(places, dtype=np.int64).T
    overlap = _overlap(left, right)
    assert overlap.total == len(places)
    assert overlap.count[overlap.matched()].sum() == _best(left, right)
    assert overlap.adjusted_rand_index() == pytest.approx(adjusted_rand_score(left, right))
    expected = normalized_mutual_info_score(left, right)
    assert overlap.normalized_mutual_information() == pytest.approx(expected, abs=1e-12)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 4)), min_size=1, max_size=60))
def test_no_cluster_is_matched_twice(places: list[tuple[int, int]]) -> None:
    left, right = np.array(places, dtype=np.int64).T
    overlap = _overlap(left, right)
    matched = overlap.matched()
    for side in (overlap.left, overlap.right):
        assert len(set(side[matched])) == matched.sum()


def test_renumbered_clusters_agree_completely() -> None:
    left = np.array([0, 0, 1, 2, 2, 2])
    overlap = _overlap(left, np.array([5, 9, 7])[left])
    assert overlap.matched().all()
    assert overlap.adjusted_rand_index() == overlap.normalized_mutual_information() == 1.0


def test_many_clusters_need_no_dense_table() -> None:
    """A table of 25,000 by 25,000 would take five gigabytes and hours."""
    random = np.random.default_rng(0)
    left = random.integers(0, 25_000, 100_000)
    right = np.where(random.random(100_000) < 0.7, left, random.integers(0, 25_000, 100_000))
    overlap = _overlap(left, right)
    stay = overlap.count[overlap.matched()].sum() / overlap.total
    assert stay == pytest.approx(0.7, abs=0.03)
    assert overlap.adjusted_rand_index() == pytest.approx(adjusted_rand_score(left, right))
