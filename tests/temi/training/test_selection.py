"""Heads whose clusters follow the graph of neighbors are kept."""

import numpy as np
import pytest

from temi.training.selection import choose_heads, edge_modularity

CLUSTERS = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0]])  # of three heads
NEAR = np.array([[1, 1], [0, 0], [3, 3], [2, 2]])  # two pairs of images


def test_modularity_is_that_of_the_edges() -> None:
    found = edge_modularity(CLUSTERS, CLUSTERS[:, NEAR], np.ones(NEAR.shape, dtype=bool))

    # All edges inside of one of two equal clusters; none; all, as by chance.
    np.testing.assert_allclose(found, [0.5, -0.5, 0.0])


def test_absent_neighbors_do_not_count() -> None:
    beside = CLUSTERS[:, NEAR]
    beside[:, :, 1] = 1 - beside[:, :, 1]  # wrong, but absent
    present = np.tile([True, False], (4, 1))

    np.testing.assert_allclose(edge_modularity(CLUSTERS, beside, present), [0.5, -0.5, 0.0])
    nothing = edge_modularity(CLUSTERS, beside, np.zeros_like(present))
    np.testing.assert_array_equal(nothing, 0)


@pytest.mark.parametrize(("n_heads", "kept"), [(1, 1), (8, 8), (12, 8), (16, 8), (24, 12)])
def test_the_better_half_is_kept_but_at_least_eight_heads(n_heads: int, kept: int) -> None:
    modularity = np.random.default_rng(0).permutation(n_heads).astype(np.float64)

    found = choose_heads(modularity)

    assert len(found) == kept
    assert (np.diff(found) > 0).all()
    assert modularity[found].min() == n_heads - kept
