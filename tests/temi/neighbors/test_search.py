from pathlib import Path

import faiss
import numpy as np
import pytest

from temi.errors import InvalidConfig, TemiError
from temi.neighbors import search as module
from temi.neighbors.search import Method, mine_neighbors
from tests.temi.neighbors.brute_force import (
    assert_lists,
    assert_nearest,
    clustered_features,
    random_features,
    recall,
)


def test_few_rows_are_searched_exactly() -> None:
    features = random_features(300)

    found = mine_neighbors(features, 10)

    assert_nearest(features, found.ids)
    assert (found.method, found.recall, found.n_cells) == ("exact", 1.0, None)
    assert found.summary() == {
        "k": 10,
        "method": "exact",
        "recall": 1.0,
        "n_cells": None,
        "n_probes": None,
    }


def test_many_rows_are_searched_approximately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "APPROXIMATE_ROWS", 2999)
    features = clustered_features(3000)

    found = mine_neighbors(features, 10)

    assert found.method == "approximate"
    assert_lists(found.ids, 10)
    assert found.recall >= 0.98
    assert recall(features, found.ids) >= 0.98
    assert found.n_probes is not None
    assert found.n_cells is not None
    assert mine_neighbors(features, 10, method="exact").method == "exact"


def test_exact_if_the_approximation_is_not_faster() -> None:
    features = random_features(1500, 128)
    seen: list[int] = []

    found = mine_neighbors(
        features, 10, method="approximate", progress=lambda done, _total: seen.append(done)
    )

    assert (found.method, found.recall) == ("exact", 1.0)
    assert_nearest(features, found.ids)
    assert seen == sorted(seen)
    assert seen[-1] == 1500


def test_exact_if_the_rows_do_not_fit_in_memory() -> None:
    features = clustered_features(1000)

    found = mine_neighbors(features, 5, method="approximate", memory_bytes=1000)

    assert found.method == "exact"
    assert_nearest(features, found.ids)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_memory_map(method: Method, tmp_path: Path) -> None:
    features = clustered_features(1000)
    np.save(tmp_path / "features.npy", features)

    found = mine_neighbors(np.load(tmp_path / "features.npy", mmap_mode="r"), 4, method=method)

    np.testing.assert_array_equal(found.ids, mine_neighbors(features, 4, method=method).ids)


@pytest.mark.parametrize("method", ["auto", "exact", "approximate"])
def test_k_is_clipped_to_the_number_of_other_rows(method: Method) -> None:
    features = random_features(5)

    assert_lists(mine_neighbors(features, 50, method=method).ids, 4)
    assert mine_neighbors(features[:2], 50, method=method).ids.tolist() == [[1], [0]]
    assert mine_neighbors(features[:1], 50, method=method).ids.shape == (1, 0)
    assert mine_neighbors(features[:0], 50, method=method).ids.shape == (0, 0)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_zero_rows_and_equal_rows(method: Method) -> None:
    features = random_features(200)
    features[3] = 0
    features[100:] = features[100]

    assert_lists(mine_neighbors(features, 4, method=method).ids, 4)
    assert_lists(mine_neighbors(np.ones((90, 4), dtype=np.float32), 5, method=method).ids, 5)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_invalid_arguments_are_refused(method: Method) -> None:
    with pytest.raises(InvalidConfig, match="at least 1"):
        mine_neighbors(random_features(5), 0, method=method)
    for value in (np.nan, np.inf):
        spoilt = random_features(50)
        spoilt[49, 0] = value
        with pytest.raises(TemiError, match="NaN"):
            mine_neighbors(spoilt, 2, method=method)
    with pytest.raises(TemiError, match="shape"):
        mine_neighbors(np.zeros(5, dtype=np.float32), 2, method=method)


@pytest.mark.parametrize("method", ["exact", "approximate"])
def test_the_number_of_threads_changes_no_neighbor(method: Method) -> None:
    features = clustered_features(3000)
    before = faiss.omp_get_max_threads()
    found = []
    try:
        for threads in (1, 2, 5, 16):
            faiss.omp_set_num_threads(threads)
            found.append(mine_neighbors(features, 10, method=method))
    finally:
        faiss.omp_set_num_threads(before)

    assert {one.method for one in found} == {method}
    for one in found[1:]:
        np.testing.assert_array_equal(one.ids, found[0].ids)
