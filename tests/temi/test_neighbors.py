from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temi import neighbors as module
from temi.errors import InvalidConfig, TemiError
from temi.neighbors import mine_neighbors

Features = npt.NDArray[np.float32]


def random_features(n: int, dim: int = 8, seed: int = 0) -> Features:
    return np.random.default_rng(seed).normal(size=(n, dim)).astype(np.float32)


def cosine(features: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    unit = features.astype(np.float64)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    scores: npt.NDArray[np.float64] = unit @ unit.T
    np.fill_diagonal(scores, -np.inf)
    return scores


def assert_nearest(features: Features, found: npt.NDArray[np.int64]) -> None:
    """Compared by similarity, since rows that tie may come in any order."""
    scores = cosine(features)
    k = found.shape[1]
    best = -np.sort(-scores, axis=1)[:, :k]
    np.testing.assert_allclose(np.take_along_axis(scores, found, axis=1), best, atol=1e-5)
    assert (found != np.arange(len(found))[:, None]).all()
    assert all(len(set(row)) == k for row in found)


@pytest.mark.parametrize("block_rows", [7, 64, 4096])
def test_many_blocks_agree_with_brute_force(
    block_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BASE_ROWS", 50)
    features = random_features(203)

    assert_nearest(features, mine_neighbors(features, 10, block_rows=block_rows))


def test_duplicates_find_each_other_and_never_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BASE_ROWS", 16)
    features = np.repeat(random_features(20), 4, axis=0)

    found = mine_neighbors(features, 3, block_rows=9)

    for row, ids in enumerate(found):
        group = range(row // 4 * 4, row // 4 * 4 + 4)
        assert set(ids) == set(group) - {row}


def test_all_rows_equal() -> None:
    found = mine_neighbors(np.ones((30, 4), dtype=np.float32), 5, block_rows=8)

    assert (found != np.arange(30)[:, None]).all()
    assert all(len(set(row)) == 5 for row in found)


def test_memory_map(tmp_path: Path) -> None:
    features = random_features(50)
    path = tmp_path / "features.npy"
    np.save(path, features)

    mapped = np.load(path, mmap_mode="r")

    assert_nearest(features, mine_neighbors(mapped, 4, block_rows=16))


def test_k_is_clipped_to_the_others() -> None:
    features = random_features(5)

    assert mine_neighbors(features, 50).shape == (5, 4)
    assert mine_neighbors(features[:1], 50).shape == (1, 0)


def test_a_zero_row_is_no_trouble() -> None:
    features = random_features(10)
    features[3] = 0

    found = mine_neighbors(features, 4)

    assert (found != np.arange(10)[:, None]).all()


def test_progress_counts_rows() -> None:
    seen: list[tuple[int, int]] = []

    mine_neighbors(
        random_features(25),
        3,
        block_rows=10,
        progress=lambda done, total: seen.append((done, total)),
    )

    assert seen == [(10, 25), (20, 25), (25, 25)]


def test_refusals() -> None:
    with pytest.raises(InvalidConfig, match="at least 1"):
        mine_neighbors(random_features(5), 0)
    with pytest.raises(TemiError, match="NaN"):
        mine_neighbors(np.full((5, 3), np.nan, dtype=np.float32), 2)
    with pytest.raises(TemiError, match="shape"):
        mine_neighbors(np.zeros(5, dtype=np.float32), 2)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 40), k=st.integers(1, 45), block_rows=st.integers(1, 50))
def test_any_shape(n: int, k: int, block_rows: int) -> None:
    features = random_features(n, seed=n * 100 + k)

    found = mine_neighbors(features, k, block_rows=block_rows)

    assert found.shape == (n, min(k, n - 1))
    assert found.dtype == np.int64
    assert_nearest(features, found)
