from pathlib import Path

import numpy as np
import pytest

from temi.errors import TemiError
from temi.neighbors import cells, scan, sharded
from temi.neighbors.approximate import approximate_neighbors
from temi.neighbors.recall import MIN_RECALL, RecallSample, measure_recall
from temi.neighbors.sharded import storage_dtype
from tests.temi.neighbors.brute_force import (
    Features,
    assert_lists,
    clustered_features,
    random_features,
    recall,
)

GIGABYTE = 1 << 30
K = 10


@pytest.fixture(scope="module")
def features() -> Features:
    return clustered_features(4000)


@pytest.mark.parametrize("dim_bytes", [4, 2])
def test_the_reported_recall_is_correct(features: Features, dim_bytes: int) -> None:
    found = approximate_neighbors(features, K, memory_bytes=dim_bytes * features.size)

    assert found is not None
    assert_lists(found.ids, K)
    assert recall(features, found.ids) >= MIN_RECALL
    assert found.recall == pytest.approx(recall(features, found.ids), abs=0.01)
    assert 1 <= found.n_probes < found.n_cells


def test_the_sizes_of_batches_and_products_change_nothing(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = approximate_neighbors(features, K, memory_bytes=GIGABYTE)
    monkeypatch.setattr(scan, "_BATCH_ROWS", 300)
    monkeypatch.setattr(scan, "_PRODUCT_QUERIES", 7)
    monkeypatch.setattr(scan, "_PRODUCT_ROWS", 11)
    parts = approximate_neighbors(features, K, memory_bytes=GIGABYTE)

    assert whole is not None
    assert parts is not None
    assert (whole.ids == parts.ids).mean() > 0.999  # rounding may swap two that nearly tie


def test_the_same_seed_gives_the_same_answer(features: Features) -> None:
    first, again, other = (
        approximate_neighbors(features, K, seed=seed, memory_bytes=GIGABYTE) for seed in (1, 1, 2)
    )

    assert first is not None
    assert again is not None
    assert other is not None
    np.testing.assert_array_equal(first.ids, again.ids)
    assert (first.recall, first.n_probes) == (again.recall, again.n_probes)
    assert (first.ids != other.ids).any()


def test_memory_map(features: Features, tmp_path: Path) -> None:
    np.save(tmp_path / "features.npy", features)
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")

    found, direct = (
        approximate_neighbors(source, K, memory_bytes=GIGABYTE) for source in (mapped, features)
    )

    assert found is not None
    assert direct is not None
    np.testing.assert_array_equal(found.ids, direct.ids)


def test_duplicates_are_neighbors_and_a_row_is_not_its_own_neighbor() -> None:
    features = np.repeat(clustered_features(700), 5, axis=0)

    found = approximate_neighbors(features, 4, memory_bytes=GIGABYTE)

    assert found is not None
    assert_lists(found.ids, 4)
    same = found.ids // 5 == np.arange(len(features))[:, None] // 5
    assert same.mean() > MIN_RECALL


def test_rows_with_too_few_neighbors_in_their_cells_scan_more_cells(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One probe in cells of 16 rows cannot give 40 neighbors."""
    monkeypatch.setattr(sharded, "choose_n_probes", lambda *_: 1)
    monkeypatch.setattr(sharded, "MIN_RECALL", 0.0)
    monkeypatch.setattr(cells, "_CELL_EXPONENT", 1.0)

    found = approximate_neighbors(features, 40, memory_bytes=GIGABYTE)

    assert found is not None
    assert_lists(found.ids, 40)


def test_more_probes_if_the_recall_is_too_low(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded, "choose_n_probes", lambda *_: 1)

    found = approximate_neighbors(features, K, memory_bytes=GIGABYTE)

    assert found is not None
    assert found.n_probes > 1
    assert found.recall >= MIN_RECALL


def test_none_if_exact_search_is_faster() -> None:
    """Noise in many dimensions has neighbors in every cell."""
    assert approximate_neighbors(random_features(2000, 128), K, memory_bytes=GIGABYTE) is None


def test_none_if_the_rows_do_not_fit(features: Features) -> None:
    assert approximate_neighbors(features, K, memory_bytes=2 * features.size - 1) is None


@pytest.mark.parametrize("n", [2, 3, 17, 500])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_equal_rows(n: int, value: float) -> None:
    features = np.full((n, 6), value, dtype=np.float32)

    found = approximate_neighbors(features, 1, memory_bytes=GIGABYTE)

    if found is not None:
        assert_lists(found.ids, 1)


def test_few_distinct_rows() -> None:
    """More cells than distinct rows: several centroids are the same, or stay empty."""
    features = random_features(6)[np.random.default_rng(0).integers(6, size=2000)]

    found = approximate_neighbors(features, K, memory_bytes=GIGABYTE)

    assert found is not None
    assert_lists(found.ids, K)
    np.testing.assert_array_equal(features[found.ids[:, 0]], features)


def test_recall_counts_ties_as_correct() -> None:
    features = np.ones((50, 4), dtype=np.float32)
    features[40:] = -1
    sample = RecallSample(np.array([0, 1]), np.array([[1, 2], [2, 3]]))

    assert measure_recall(features, sample, np.array([[30, 31], [32, 33]])) == 1.0
    assert measure_recall(features, sample, np.array([[30, 41], [42, 43]])) == 0.25


def test_refuses_nan(features: Features) -> None:
    invalid = features.copy()
    invalid[3999, 5] = np.nan

    with pytest.raises(TemiError, match="NaN"):
        approximate_neighbors(invalid, K, memory_bytes=GIGABYTE)


def test_storage_dtype() -> None:
    assert storage_dtype(100, 400) is np.float32
    assert storage_dtype(100, 399) is np.float16
    assert storage_dtype(100, 199) is None
