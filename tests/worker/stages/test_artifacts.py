from pathlib import Path

import numpy as np
import pytest

from app.core.storage import Storage
from app.core.storage.local import LocalStorage
from temi import standardize
from worker.stages.artifacts import (
    content_key,
    gather_rows,
    load_array,
    load_json,
    save_array,
    save_json,
)


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def test_key_changes_with_every_part() -> None:
    assert content_key("a", {"x": 1, "y": 2}) == content_key("a", {"y": 2, "x": 1})
    assert content_key("a", {"x": 1}) != content_key("b", {"x": 1})
    assert content_key("a", {"x": 1}) != content_key("a", {"x": 2})


def test_an_array_is_memory_mapped(storage: Storage) -> None:
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    save_array(storage, "a.npy", array)
    loaded = load_array(storage, "a.npy")
    assert isinstance(loaded, np.memmap)
    np.testing.assert_array_equal(loaded, array)


def test_rows_are_gathered_from_several_arrays(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standardize, "CHUNK_ROWS", 2)
    arrays = [np.random.default_rng(n).normal(size=(n + 2, 3)).astype(np.float32) for n in (0, 1)]
    for number, array in enumerate(arrays):
        save_array(storage, f"{number}.npy", array)
    source, row = np.array([1, 0, 1, 1, 0]), np.array([2, 0, 0, 2, 1])

    gather_rows(storage, "all.npy", ["0.npy", "1.npy"], source, row)

    expected = [arrays[p][r] for p, r in zip(source, row, strict=True)]
    np.testing.assert_array_equal(load_array(storage, "all.npy"), expected)


def test_a_missing_source_leaves_no_artifact(storage: Storage) -> None:
    save_array(storage, "0.npy", np.zeros((3, 2), dtype=np.float32))
    with pytest.raises(FileNotFoundError):
        gather_rows(storage, "all.npy", ["0.npy", "1.npy"], np.array([0, 1]), np.array([0, 0]))
    assert not storage.exists("all.npy")


def test_json_round_trip(storage: Storage) -> None:
    save_json(storage, "x.json", {"b": [1, 2.5], "a": None})
    assert load_json(storage, "x.json") == {"a": None, "b": [1, 2.5]}
