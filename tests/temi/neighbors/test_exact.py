from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from temi.errors import TemiError
from temi.neighbors import exact, rows
from temi.neighbors.exact import exact_neighbors
from tests.temi.neighbors.brute_force import assert_lists, assert_nearest, random_features

GIGABYTE = 1 << 30


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "_READ_ROWS", 50)
    monkeypatch.setattr(exact, "_QUERY_ROWS", 16)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("memory_bytes", [0, 9000, GIGABYTE])
def test_many_blocks_agree_with_brute_force(memory_bytes: int) -> None:
    features = random_features(203)

    assert_nearest(features, exact_neighbors(features, 10, memory_bytes=memory_bytes))


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("memory_bytes", [0, GIGABYTE])
def test_duplicates_are_neighbors_of_each_other_and_not_of_themselves(memory_bytes: int) -> None:
    features = np.repeat(random_features(40), 4, axis=0)

    found = exact_neighbors(features, 3, memory_bytes=memory_bytes)

    for row, ids in enumerate(found):
        group = range(row // 4 * 4, row // 4 * 4 + 4)
        assert set(ids) == set(group) - {row}


@pytest.mark.usefixtures("small_blocks")
def test_all_rows_equal() -> None:
    assert_lists(exact_neighbors(np.ones((130, 4), dtype=np.float32), 5, memory_bytes=0), 5)


def test_features_that_fit_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "_QUERY_ROWS", 16)
    np.save(tmp_path / "features.npy", random_features(64))
    mapped = np.load(tmp_path / "features.npy", mmap_mode="r")
    read: list[int] = []
    unit_rows = rows.unit_rows

    def counted(features: rows.Features, wanted: slice | rows.Ids) -> rows.Floats:
        block = unit_rows(features, wanted)
        read.append(len(block))
        return block

    monkeypatch.setattr(rows, "unit_rows", counted)

    whole = exact_neighbors(mapped, 4, memory_bytes=GIGABYTE)
    assert sum(read) == 64
    read.clear()
    parts = exact_neighbors(mapped, 4, memory_bytes=32 * (4 * 8 + 12 * 5))
    assert sum(read) == 64 + 2 * 64  # every row once as a query, and once for each part
    np.testing.assert_array_equal(whole, parts)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("memory_bytes", [0, GIGABYTE])
def test_progress_ends_with_all_rows(memory_bytes: int) -> None:
    seen: list[tuple[int, int]] = []

    exact_neighbors(
        random_features(125),
        3,
        memory_bytes=memory_bytes,
        progress=lambda done, total: seen.append((done, total)),
    )

    assert seen == sorted(seen)
    assert seen[-1] == (125, 125)


@pytest.mark.usefixtures("small_blocks")
def test_an_error_in_progress_stops_the_search() -> None:
    def give_up(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        exact_neighbors(random_features(125), 3, memory_bytes=0, progress=give_up)


def test_huge_numbers_are_accepted_and_infinite_ones_refused() -> None:
    features = random_features(30)

    assert_nearest(features, exact_neighbors(features * 1e30, 4, memory_bytes=GIGABYTE))
    with pytest.raises(TemiError, match="infinity"):
        exact_neighbors(np.full_like(features, np.inf), 4, memory_bytes=GIGABYTE)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(2, 40), k=st.integers(1, 39), memory_bytes=st.integers(0, 4000))
def test_any_shape(n: int, k: int, memory_bytes: int) -> None:
    features = random_features(n, seed=n * 100 + k)

    found = exact_neighbors(features, min(k, n - 1), memory_bytes=memory_bytes)

    assert found.shape == (n, min(k, n - 1))
    assert_nearest(features, found)
