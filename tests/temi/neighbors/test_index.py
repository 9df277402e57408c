"""The index of features, against a comparison of all rows."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from temi.neighbors import index
from temi.neighbors.index import FeatureIndex, build_index


def _groups(rows: int, dim: int) -> npt.NDArray[np.float32]:
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(40, dim))
    return (centers[rng.integers(40, size=rows)] + 0.5 * rng.normal(size=(rows, dim))).astype("f4")


@pytest.mark.parametrize("dim", [16, 200])
def test_the_nearest_rows_are_among_the_candidates(tmp_path: Path, dim: int) -> None:
    features = _groups(6000, dim)
    build_index(features, tmp_path / "index")
    opened = FeatureIndex(tmp_path / "index")
    units = features / np.linalg.norm(features, axis=1, keepdims=True)
    hits = 0
    for row in range(0, 6000, 300):
        found = opened.candidates(features[row], 20)
        assert (np.diff(found) > 0).all()
        assert len(found) < 1000  # not all rows
        hits += len(np.intersect1d(found, np.argsort(-units @ units[row])[:20]))
    assert hits >= 0.99 * 20 * 20


def test_the_same_features_give_the_same_file(tmp_path: Path) -> None:
    features = _groups(3000, 40)
    for name in ("a", "b"):
        build_index(features, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_more_results_than_rows_and_zero_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "_PROBED_CELLS", 1000)
    features = _groups(300, 8)
    features[7] = 0
    build_index(features, tmp_path / "index")
    opened = FeatureIndex(tmp_path / "index")
    assert opened.candidates(features[0], 5000).tolist() == list(range(300))
    assert len(opened.candidates(features[7], 5)) == 300
