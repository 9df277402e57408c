"""A sharded search gives the same neighbors as a single search."""

import numpy as np
import pytest

from temi.neighbors import sharded
from temi.neighbors.approximate import approximate_neighbors
from temi.neighbors.exact import exact_neighbors
from temi.neighbors.recall import MIN_RECALL
from temi.neighbors.sharded import IvfPlan, ShardedSearch
from tests.temi.neighbors.brute_force import Features, Ids, clustered_features, random_features

GIGABYTE = 1 << 30
K = 10
ROWS = 700  # a part; the last one is shorter


@pytest.fixture(scope="module")
def features() -> Features:
    return clustered_features(4000)


def slices(n: int) -> list[slice]:
    return [slice(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]


def search_all(search: ShardedSearch, *helpers: ShardedSearch) -> Ids:
    """Search every part, by the search and its helpers in turn."""
    n = len(search.features)
    found = np.full((n, search.k), -1, dtype=np.int64)
    searches = [search, *helpers]
    for number, part in enumerate(slices(n)):
        search.store_part(found, part, searches[number % len(searches)].search_part(part))
    return found


def on_another_machine(search: ShardedSearch) -> ShardedSearch:
    """Create the search again from its stored plan."""
    plan = IvfPlan.from_arrays(search.plan.arrays()) if search.plan else None
    return ShardedSearch.from_plan(search.features.copy(), search.k, plan=plan)


def test_approximate_search(features: Features) -> None:
    search = ShardedSearch.create(features, K, memory_bytes=GIGABYTE)
    assert search.plan is not None
    alone = search_all(search)
    shared = search_all(search, on_another_machine(search), on_another_machine(search))
    np.testing.assert_array_equal(shared, alone)
    whole = approximate_neighbors(features, K, memory_bytes=GIGABYTE)
    assert whole is not None
    found = search.check_recall(shared)
    assert found is not None
    assert (found.recall, found.n_cells) == (whole.recall, whole.n_cells)
    np.testing.assert_array_equal(shared, whole.ids)


def test_approximate_search_in_half_precision(features: Features) -> None:
    search = ShardedSearch.create(features, K, memory_bytes=2 * features.size)
    assert search.plan is not None
    assert search.plan.dtype == "float16"
    np.testing.assert_array_equal(
        search_all(search, on_another_machine(search)), search_all(search)
    )


def test_exact_search() -> None:
    """Noise in many dimensions has neighbors in every cell, so exact search is faster."""
    features = random_features(2000, 128)
    search = ShardedSearch.create(features, K, memory_bytes=GIGABYTE)
    assert search.plan is None
    shared = search_all(search, on_another_machine(search))
    np.testing.assert_array_equal(shared, exact_neighbors(features, K, memory_bytes=GIGABYTE))
    assert search.check_recall(shared) is None


def test_rows_that_do_not_fit_are_searched_exactly(features: Features) -> None:
    search = ShardedSearch.create(features, K, memory_bytes=2 * features.size - 1)
    assert search.plan is None


def test_more_probes_until_the_recall_is_reached(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharded, "choose_n_probes", lambda *_: 1)
    search = ShardedSearch.create(features, K, memory_bytes=GIGABYTE)
    tried = []
    while search.plan is not None and search.check_recall(search_all(search)) is None:
        tried.append(search.plan.n_probes)
        search = search.with_more_probes()
    found = search.check_recall(search_all(search))
    assert found is not None
    assert found.recall >= MIN_RECALL
    assert tried[:2] == [1, 2]
    assert found.n_probes > tried[-1]


def test_exact_search_if_too_many_cells_would_be_scanned(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = ShardedSearch.create(features, K, memory_bytes=GIGABYTE)
    monkeypatch.setattr(sharded, "MAX_SCANNED_SHARE", 0.0)
    assert search.with_more_probes().plan is None


def test_progress_counts_the_rows_of_the_part(features: Features) -> None:
    search = ShardedSearch.create(features, K, memory_bytes=GIGABYTE)
    reports: list[tuple[int, int]] = []
    search.search_part(slice(700, 1400), lambda *report: reports.append(report))
    assert reports[-1] == (700, 700)
