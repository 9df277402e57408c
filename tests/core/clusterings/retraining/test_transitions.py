"""How groups continue, from the images that they have in common with new clusters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.clusterings.agreement import Overlap
from app.core.clusterings.retraining.transitions import Transitions, find_transitions


def _find(*table: list[int]) -> Transitions:
    """`table[i][j]` images of group i are in the new cluster j."""
    counts = np.array(table, dtype=np.int64)
    left, right = np.nonzero(counts)
    return find_transitions(Overlap(left, right, counts[left, right]))


def _statuses(found: Transitions, groups: int) -> list[str]:
    return [found.status(group, joined=False) for group in range(groups)]


def test_renumbered_groups_are_kept() -> None:
    found = _find([0, 9, 0], [0, 1, 8], [7, 0, 0])
    assert found.parts == {0: [1], 1: [2], 2: [0]}
    assert _statuses(found, 3) == ["kept"] * 3


def test_a_group_in_two_clusters_is_split() -> None:
    found = _find([6, 4, 0], [1, 0, 9])
    assert found.parts == {0: [0, 1], 1: [2]}
    assert _statuses(found, 2) == ["split", "kept"]
    assert found.status(0, joined=True) == "kept"


def test_the_larger_of_two_merged_groups_continues() -> None:
    found = _find([4, 0], [6, 0], [0, 5])
    assert found.parts == {0: [], 1: [0], 2: [1]}
    assert _statuses(found, 3) == ["merged", "merged", "kept"]
    assert (found.merged_into(0), found.merged_into(1)) == (0, None)
    assert (found.merged_with(0), found.merged_with(1)) == ([1], [0])


def test_a_scattered_group_vanishes() -> None:
    found = _find([9, 0, 0], [0, 9, 0], [0, 0, 9], [2, 2, 2])
    assert _statuses(found, 4) == ["kept", "kept", "kept", "vanished"]
    assert found.goes_to.get(3) is None


def test_what_is_left_is_matched_one_to_one() -> None:
    """No cluster has most of a group, and none consists of one."""
    found = _find([8, 6, 6], [6, 6, 8], [6, 8, 6])
    assert found.parts == {0: [0], 1: [2], 2: [1]}
    assert found.stays == {0: 0.4, 1: 0.4, 2: 0.4}


def test_a_crumb_is_no_part() -> None:
    """Nineteen of twenty images stay together; the cluster of the other one continues nothing."""
    found = _find([19, 1])
    assert found.parts == {0: [0]}
    assert found.holders == {0: 0}


def test_a_name_does_not_go_to_a_cluster_with_more_images_of_another_group() -> None:
    """The assignment with the most images in common would give cluster 0 to the second group."""
    found = _find([60, 40], [40, 0])
    assert found.parts == {0: [0, 1], 1: []}


def test_equal_counts_go_to_the_lowest_number() -> None:
    assert _find([5], [5]).holders == {0: 0}
    assert _find([5, 5]).goes_to == {0: [0, 1]}


@given(st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=5))
def test_any_table(table: list[list[int]]) -> None:
    if not np.any(table):
        return
    found = _find(*table)
    counts = np.array(table)
    for number, holder in found.holders.items():
        assert number in found.goes_to[holder]
        assert all(
            counts[holder, number] >= counts[group, number] for group in found.sources[number]
        )
    for group, row in enumerate(counts):
        if 2 * row.max() > row.sum():  # most of it is in one cluster
            assert found.status(group, joined=False) != "vanished"
        assert set(found.goes_to.get(group, [])) >= set(found.parts.get(group, []))


def test_many_groups_need_no_dense_table() -> None:
    random = np.random.default_rng(0)
    left = random.integers(0, 25_000, 100_000)
    right = np.where(random.random(100_000) < 0.7, left, random.integers(0, 25_000, 100_000))
    pairs, count = np.unique(np.stack([left, right]), axis=1, return_counts=True)
    found = find_transitions(Overlap(pairs[0], pairs[1], count.astype(np.int64)))
    same = np.mean([found.parts.get(number, [])[:1] == [number] for number in range(25_000)])
    assert same == pytest.approx(0.8, abs=0.2)
