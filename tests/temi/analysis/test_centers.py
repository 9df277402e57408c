"""Distances to the center of a cluster."""

import numpy as np
import pytest

from temi import standardize
from temi.analysis.centers import center_distances


def test_against_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standardize, "CHUNK_ROWS", 7)
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 5)).astype(np.float32) * rng.uniform(0.1, 9, (40, 1))
    assigned = rng.integers(0, 4, 40)
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    expected = []
    for unit, cluster in zip(units, assigned, strict=True):
        center = units[assigned == cluster].mean(axis=0)
        expected.append(1 - unit @ center / np.linalg.norm(center))

    found = center_distances(features, assigned, 6)

    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_an_outlier_has_the_largest_distance() -> None:
    features = np.array([[1, 0.1], [1, 0], [1, -0.1], [-1, 0.5], [0, 0]])
    found = center_distances(features, np.zeros(5, dtype=int), 1)
    assert found.argmax() == 3
    assert found[4] == 1  # a row of zeros has no direction
