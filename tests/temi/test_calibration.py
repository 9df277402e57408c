"""Probabilities are calibrated without changing any label."""

import numpy as np
import pytest
from scipy.optimize import minimize

from temi.analysis.reliability import measure_reliability
from temi.calibration import (
    IDENTITY,
    MIN_SLOPE,
    Calibration,
    Numbers,
    fit_calibration,
    fit_without_labels,
)
from temi.errors import TemiError

MAPS = [
    IDENTITY,
    Calibration(slope=0.3, intercept=-2.0),
    Calibration(slope=3.0, intercept=1.5),
    Calibration(slope=MIN_SLOPE, intercept=-5.0),
]


def _reviews(n: int, slope: float, intercept: float, seed: int = 0) -> tuple[Numbers, Numbers]:
    rng = np.random.default_rng(seed)
    sure = rng.uniform(0.2, 0.999, n)
    true = 1 / (1 + np.exp(-(slope * np.log(sure / (1 - sure)) + intercept)))
    return sure, (rng.random(n) < true).astype(float)


@pytest.mark.parametrize("calibration", MAPS)
def test_the_order_of_the_clusters_stays(calibration: Calibration) -> None:
    raw = np.random.default_rng(1).dirichlet(np.full(6, 0.3), size=500).astype(np.float32)
    raw[0] = [1, 0, 0, 0, 0, 0]
    raw[1] = [0.5, 0.5, 0, 0, 0, 0]
    found = calibration.apply_to_all(raw)
    np.testing.assert_array_equal(found.argmax(axis=1), raw.argmax(axis=1))
    np.testing.assert_array_equal(
        np.argsort(-found, axis=1, kind="stable")[2:], np.argsort(-raw, axis=1, kind="stable")[2:]
    )
    assert found.dtype == np.float32
    assert (found >= 0).all()
    assert (found.sum(axis=1) < 1 + 1e-5).all()
    np.testing.assert_allclose(found.max(axis=1), calibration.apply(raw.max(axis=1)), rtol=1e-6)
    np.testing.assert_array_equal(calibration.apply_to_all(raw[7]), found[7])


def test_more_certain_images_stay_more_certain() -> None:
    sure = np.linspace(0.01, 0.99, 99)
    for calibration in MAPS:
        assert (np.diff(calibration.apply(sure)) > 0).all()


def test_a_raised_probability_leaves_the_rest_to_the_others() -> None:
    found = Calibration(slope=1.0, intercept=1.0).apply_to_all(np.array([0.6, 0.3, 0.1]))
    assert found.sum() == pytest.approx(1)
    assert found[1] / found[2] == pytest.approx(3)


def test_a_lowered_probability_leaves_a_rest_to_none() -> None:
    found = Calibration(slope=1.0, intercept=-1.0).apply_to_all(np.array([0.6, 0.3, 0.1]))
    np.testing.assert_allclose(found / found[0], [1, 0.5, 1 / 6], rtol=1e-6)
    assert found.sum() < 1


@pytest.mark.parametrize("calibration", MAPS[:3])
def test_it_can_be_inverted(calibration: Calibration) -> None:
    sure = np.linspace(0.05, 0.95, 19)
    np.testing.assert_allclose(calibration.invert(calibration.apply(sure)), sure, rtol=1e-9)


def test_the_fit_finds_the_truth() -> None:
    found = fit_calibration(*_reviews(20_000, 0.6, -0.8))
    assert found.slope == pytest.approx(0.6, abs=0.05)
    assert found.intercept == pytest.approx(-0.8, abs=0.05)


def test_the_fit_is_the_minimum_of_the_loss() -> None:
    sure, right = _reviews(150, 0.5, -1.0)
    prior, weights = Calibration(slope=0.9, intercept=0.2), np.array([3.0, 0.5])
    odds = np.log(sure / (1 - sure))

    def loss(at: Numbers) -> float:
        z = at[0] * odds + at[1]
        data = -(right * -np.logaddexp(0, -z) + (1 - right) * -np.logaddexp(0, z)).sum()
        return float(data + (weights * (at - [0.9, 0.2]) ** 2).sum() / 2)

    slow = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    found = fit_calibration(sure, right, prior=prior, prior_weights=(3.0, 0.5))
    assert [found.slope, found.intercept] == pytest.approx(slow.x, abs=1e-5)


def test_few_images_stay_near_the_prior() -> None:
    prior = Calibration(slope=0.7, intercept=-0.4)
    found = fit_calibration([0.9], [0.0], prior=prior, prior_weights=(50.0, 50.0))
    assert found.slope == pytest.approx(prior.slope, abs=0.1)
    assert found.intercept == pytest.approx(prior.intercept, abs=0.1)


def test_a_falling_trend_still_gives_a_rising_map() -> None:
    sure = np.linspace(0.3, 0.95, 400)
    found = fit_calibration(sure, (sure < 0.6).astype(float))
    assert found.slope == MIN_SLOPE
    assert float(found.apply(0.6)) == pytest.approx(np.mean(sure < 0.6), abs=0.05)


def test_all_right_and_all_wrong_have_a_fit() -> None:
    sure = np.array([1.0, 0.0, 0.5, 0.9])
    assert float(fit_calibration(sure, np.ones(4)).apply(0.5)) > 0.5
    assert float(fit_calibration(sure, np.zeros(4)).apply(0.5)) < 0.5


def test_without_labels_the_neighbors_decide() -> None:
    rng = np.random.default_rng(0)
    n = 4000
    clear = np.arange(n) % 2 == 0
    sure = np.where(clear, 0.99, 0.8) - rng.uniform(0, 0.01, n)
    assigned = np.zeros(n, dtype=np.int64)
    assigned[n // 2 :] = 1
    # Neighbors of clear images are in their own cluster; those of others in half of the cases.
    own = rng.integers(0, n // 2, (n, 20)) + np.where(assigned == 1, n // 2, 0)[:, None]
    away = (own + n // 2) % n
    other = ~clear[:, None] & (rng.random((n, 20)) < 0.5)
    found = fit_without_labels(sure, assigned, np.where(other, away, own))
    assert float(found.apply(0.985)) == pytest.approx(1, abs=0.03)
    assert float(found.apply(0.795)) == pytest.approx(0.5, abs=0.03)


def test_calibrated_probabilities_are_reliable() -> None:
    sure, right = _reviews(30_000, 0.5, -1.0)
    found = fit_calibration(sure[:200], right[:200])
    before = measure_reliability(sure[200:], right[200:]).error
    after = measure_reliability(found.apply(sure[200:]), right[200:]).error
    assert before > 0.25
    assert after < 0.05


@pytest.mark.parametrize(
    "values", [{"slope": 0.0}, {"slope": float("nan")}, {"intercept": 1e3}, {"slope": -1.0}]
)
def test_impossible_maps_are_refused(values: dict[str, float]) -> None:
    with pytest.raises(TemiError, match=f"{next(iter(values))} must be"):
        Calibration(**values)


def test_images_must_match() -> None:
    with pytest.raises(TemiError, match="same images"):
        fit_calibration([0.5, 0.6], [1.0])
    with pytest.raises(TemiError, match="same images"):
        fit_calibration([], [])
