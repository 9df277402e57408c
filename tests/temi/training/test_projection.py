import numpy as np
import numpy.typing as npt
import pytest
import torch
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi import standardize
from temi.standardize import fit_standardizer
from temi.training.projection import principal_directions


def features(n: int = 400, dim: int = 48) -> npt.NDArray[np.float32]:
    rng = np.random.default_rng(0)
    spread = np.linspace(5, 0.5, dim)
    mixed = rng.normal(size=(n, dim)) * spread @ rng.normal(size=(dim, dim))
    return mixed.astype(np.float32)


def test_directions_are_those_of_largest_variance() -> None:
    rows = features()
    standardizer = fit_standardizer(rows)

    directions = principal_directions(rows, standardizer, 5)

    assert directions.shape == (48, 5)
    np.testing.assert_allclose(directions.T @ directions, np.eye(5), atol=1e-5)
    _, _, expected = np.linalg.svd(standardizer.apply(rows).astype(np.float64))
    np.testing.assert_allclose(np.abs(np.sum(directions * expected[:5].T, axis=0)), 1, atol=1e-4)


def test_the_sign_is_fixed() -> None:
    rows = features()
    directions = principal_directions(rows, fit_standardizer(rows), 10)

    largest = np.abs(directions).argmax(axis=0)
    assert (directions[largest, np.arange(10)] > 0).all()


def test_results_are_bit_identical_for_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standardize, "CHUNK_ROWS", 32)
    rows = features()
    standardizer = fit_standardizer(rows)
    found = []
    for threads in (1, 2, 3, 8):
        torch.set_num_threads(threads)
        with threadpool_limits(threads):
            found.append(principal_directions(rows, standardizer, 20))

    for one in found[1:]:
        np.testing.assert_array_equal(one, found[0])
