"""A search in parts finds what one search finds, whoever does which part."""

import numpy as np
import pytest

from temi.neighbors import approximate, parts
from temi.neighbors.approximate import LEAST_RECALL, approximate_neighbors
from temi.neighbors.exact import exact_neighbors
from temi.neighbors.parts import CellPlan, PartSearch
from tests.temi.neighbors.brute_force import Features, Ids, clustered_features, random_features

GIGABYTE = 1 << 30
K = 10
ROWS = 700  # a part; the last one is shorter


@pytest.fixture(scope="module")
def features() -> Features:
    return clustered_features(4000)


def slices(n: int) -> list[slice]:
    return [slice(start, min(start + ROWS, n)) for start in range(0, n, ROWS)]


def search_all(search: PartSearch, *helpers: PartSearch) -> Ids:
    """Every part by the next one in turn."""
    n = len(search.features)
    found = np.full((n, search.k), -1, dtype=np.int64)
    takers = [search, *helpers]
    for number, part in enumerate(slices(n)):
        search.put(found, part, takers[number % len(takers)].find(part))
    return found


def elsewhere(search: PartSearch) -> PartSearch:
    """What another machine makes of the plan."""
    plan = CellPlan.from_arrays(search.plan.arrays()) if search.plan else None
    return PartSearch.resume(search.features.copy(), search.k, plan=plan)


def test_by_cells(features: Features) -> None:
    search = PartSearch.begin(features, K, memory_bytes=GIGABYTE)
    assert search.plan is not None
    alone = search_all(search)
    shared = search_all(search, elsewhere(search), elsewhere(search))
    np.testing.assert_array_equal(shared, alone)
    whole = approximate_neighbors(features, K, memory_bytes=GIGABYTE)
    assert whole is not None
    judged = search.judge(shared)
    assert judged is not None
    assert (judged.recall, judged.n_cells) == (whole.recall, whole.n_cells)
    np.testing.assert_array_equal(shared, whole.ids)


def test_in_half_precision(features: Features) -> None:
    search = PartSearch.begin(features, K, memory_bytes=2 * features.size)
    assert search.plan is not None
    assert search.plan.dtype == "float16"
    np.testing.assert_array_equal(search_all(search, elsewhere(search)), search_all(search))


def test_exactly() -> None:
    """Noise in many dimensions has neighbors in every cell, so cells are of no use."""
    features = random_features(2000, 128)
    search = PartSearch.begin(features, K, memory_bytes=GIGABYTE)
    assert search.plan is None
    shared = search_all(search, elsewhere(search))
    np.testing.assert_array_equal(shared, exact_neighbors(features, K, memory_bytes=GIGABYTE))
    assert search.judge(shared) is None


def test_rows_that_do_not_fit_are_searched_exactly(features: Features) -> None:
    search = PartSearch.begin(features, K, memory_bytes=2 * features.size - 1)
    assert search.plan is None


def test_more_probes_until_the_recall_is_reached(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parts, "needed_probes", lambda *_: 1)
    search = PartSearch.begin(features, K, memory_bytes=GIGABYTE)
    tried = []
    while search.plan is not None and search.judge(search_all(search)) is None:
        tried.append(search.plan.probes)
        search = search.widened()
    judged = search.judge(search_all(search))
    assert judged is not None
    assert judged.recall >= LEAST_RECALL
    assert tried[:2] == [1, 2]
    assert judged.n_probes > tried[-1]


def test_exact_search_takes_over_where_no_number_of_probes_helps(
    features: Features, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = PartSearch.begin(features, K, memory_bytes=GIGABYTE)
    monkeypatch.setattr(parts, "MOST_LOOKED_AT", 0.0)
    assert search.widened().plan is None
    assert approximate.MOST_LOOKED_AT > 0


def test_progress_counts_the_rows_of_the_part(features: Features) -> None:
    search = PartSearch.begin(features, K, memory_bytes=GIGABYTE)
    told: list[tuple[int, int]] = []
    search.find(slice(700, 1400), lambda *said: told.append(said))
    assert told[-1] == (700, 700)
