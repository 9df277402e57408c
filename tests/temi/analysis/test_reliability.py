"""The calibration error is that of its definition."""

import numpy as np
import pytest

from temi.analysis.reliability import measure_reliability
from temi.errors import TemiError


def test_the_error_is_the_mean_gap_over_the_images() -> None:
    found = measure_reliability([0.95, 0.95, 0.95, 0.31, 0.39], [1, 1, 0, 0, 0])
    assert [each.images for each in found.bins] == [2, 3]
    assert found.bins[0].probability == pytest.approx(0.35)
    assert found.bins[1].accuracy == pytest.approx(2 / 3)
    assert found.error == pytest.approx((2 * 0.35 + 3 * (0.95 - 2 / 3)) / 5)
    assert found.images == 5


def test_certainty_is_in_the_last_bin() -> None:
    found = measure_reliability([1.0, 0.0], [1, 0])
    assert [each.probability for each in found.bins] == [0.0, 1.0]
    assert found.error == found.error_by_chance == 0.0


def test_the_error_by_chance_is_that_of_perfect_probabilities() -> None:
    rng = np.random.default_rng(0)
    errors, expected = [], []
    for _ in range(300):
        sure = rng.random(200)
        found = measure_reliability(sure, rng.random(200) < sure)
        errors.append(found.error)
        expected.append(found.error_by_chance)
    assert np.mean(expected) == pytest.approx(np.mean(errors), rel=0.1)


def test_images_must_match() -> None:
    with pytest.raises(TemiError, match="same images"):
        measure_reliability([0.5], [1, 0])
    with pytest.raises(TemiError, match="same images"):
        measure_reliability([], [])
