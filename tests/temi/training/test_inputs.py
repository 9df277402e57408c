from pathlib import Path

import numpy as np
import pytest
import torch

from temi.standardize import fit_standardizer
from temi.training import inputs
from temi.training.inputs import TrainingInputs, find_directions

CPU = torch.device("cpu")


@pytest.fixture
def features() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return np.random.default_rng(0).normal(3, 2, size=(50, 8)).astype(np.float32)


@pytest.mark.parametrize("projection_dim", [None, 3])
def test_rows_of_a_memory_map_equal_rows_kept_in_memory(
    features: np.ndarray[tuple[int, int], np.dtype[np.float32]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    projection_dim: int | None,
) -> None:
    np.save(tmp_path / "f.npy", features)
    standardizer = fit_standardizer(features)
    directions = find_directions(features, standardizer, projection_dim)
    kept = TrainingInputs(features, standardizer, directions, CPU)
    monkeypatch.setattr(inputs, "RESIDENT_BYTES", 0)
    mapped = TrainingInputs(
        np.load(tmp_path / "f.npy", mmap_mode="r"), standardizer, directions, CPU
    )
    ids = torch.tensor([4, 4, 0, 49])

    assert not mapped._fits
    assert kept.rows(ids).shape == (4, projection_dim or 8)
    torch.testing.assert_close(mapped.rows(ids), kept.rows(ids))


def test_rows_are_standardized(
    features: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    rows = TrainingInputs(features, fit_standardizer(features), None, CPU).rows(torch.arange(50))

    torch.testing.assert_close(rows.mean(dim=0), torch.zeros(8), atol=1e-5, rtol=0)
    torch.testing.assert_close(rows.std(dim=0, correction=0), torch.ones(8))


def test_no_projection_if_the_features_have_fewer_dimensions(
    features: np.ndarray[tuple[int, int], np.dtype[np.float32]],
) -> None:
    assert find_directions(features, fit_standardizer(features), 8) is None
