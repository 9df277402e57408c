from pathlib import Path

import numpy as np
import pytest

from temi import standardize
from temi.standardize import chunks, fit_standardizer


def test_mean_zero_and_standard_deviation_one() -> None:
    features = np.random.default_rng(0).normal(3, 5, size=(500, 6)).astype(np.float32)

    result = fit_standardizer(features).apply(features)

    np.testing.assert_allclose(result.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(result.std(axis=0), 1, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 1.0, 0.1, 1e6, -3.3e-5])
def test_constant_dimension_becomes_zero(value: float) -> None:
    features = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    features[:, 1] = value

    result = fit_standardizer(features).apply(features)

    assert np.isfinite(result).all()
    assert np.abs(result[:, 1]).max() < 0.1


def test_tiny_features_are_still_scaled() -> None:
    features = np.random.default_rng(0).normal(size=(200, 2)).astype(np.float32) * 1e-5

    result = fit_standardizer(features).apply(features)

    np.testing.assert_allclose(result.std(axis=0), 1, rtol=1e-3)


def test_blocks_and_memory_maps_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = np.random.default_rng(0).normal(size=(100, 4)).astype(np.float32)
    np.save(tmp_path / "f.npy", features)
    whole = fit_standardizer(features)
    monkeypatch.setattr(standardize, "CHUNK_ROWS", 7)

    mapped = fit_standardizer(np.load(tmp_path / "f.npy", mmap_mode="r"))

    np.testing.assert_allclose(mapped.mean, whole.mean, rtol=1e-6)
    np.testing.assert_allclose(mapped.std, whole.std, rtol=1e-6)


def test_chunks_cover_every_row_once() -> None:
    assert [(s.start, s.stop) for s in chunks(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert list(chunks(0, 4)) == []
