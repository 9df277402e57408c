"""Smoothed rows: closer within a group, deterministic, and robust to odd graphs."""

import numpy as np
import pytest

from temi.analysis.pairs import neighbor_precision
from temi.errors import TemiError
from temi.neighbors.search import mine_neighbors
from temi.training.smoothing import diffuse, smooth, smoothed_pairs
from tests.temi.conftest import Mixture


def test_smoothed_neighbors_are_of_the_same_group_more_often(mixture: Mixture) -> None:
    features, groups = mixture(300, n_groups=4, spread=1.2)
    neighbors = mine_neighbors(features, 20).ids

    pairs = smoothed_pairs(features, neighbors, 20)

    labels = list(groups)
    plain = neighbor_precision(neighbors, labels).mean
    found = neighbor_precision(pairs, labels).mean
    assert plain is not None
    assert found is not None
    assert found > plain + 0.05


def test_rows_have_length_one_for_features_of_any_size(mixture: Mixture) -> None:
    features, _ = mixture(100, n_groups=3, dim=12)
    rows = smooth(1000 * features, mine_neighbors(features, 10).ids)

    assert rows.shape == (100, 12)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-5)


def test_an_image_without_neighbors_keeps_its_row() -> None:
    rows = np.random.default_rng(0).normal(size=(6, 40)).astype(np.float32)
    neighbors = np.array([[1], [0], [3], [2], [5], [-1]])
    neighbors[4] = -1

    smoothed = diffuse(rows, neighbors)

    alone = smoothed[4] / np.linalg.norm(smoothed[4])
    np.testing.assert_allclose(alone, rows[4] / np.linalg.norm(rows[4]), atol=1e-6)
    assert np.linalg.norm(smoothed[0] - smoothed[1]) < np.linalg.norm(rows[0] - rows[1])


def test_equal_and_constant_features_give_finite_rows() -> None:
    for features in (np.ones((20, 8), np.float32), np.zeros((20, 8), np.float32)):
        assert np.isfinite(smooth(features, mine_neighbors(features, 5).ids)).all()


def test_ids_that_are_no_rows_are_refused() -> None:
    features = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    with pytest.raises(TemiError, match="neighbors must be row ids"):
        smooth(features, np.full((10, 3), 10))
