from pathlib import Path

import numpy as np
import pytest

from app.core.storage import LocalStorage
from worker.artefacts import (
    content_key,
    join_arrays,
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


def test_array_is_read_as_a_map(storage: LocalStorage) -> None:
    array = np.arange(12, dtype=np.float32).reshape(4, 3)
    save_array(storage, "a.npy", array)
    loaded = load_array(storage, "a.npy")
    assert isinstance(loaded, np.memmap)
    np.testing.assert_array_equal(loaded, array)


def test_pieces_join_in_order(storage: LocalStorage) -> None:
    pieces = [np.full((rows, 2), rows, dtype=np.float32) for rows in (3, 1, 2)]
    for number, piece in enumerate(pieces):
        save_array(storage, f"{number}.npy", piece)
    join_arrays(storage, "all.npy", [f"{number}.npy" for number in range(3)], rows=6)
    np.testing.assert_array_equal(load_array(storage, "all.npy"), np.concatenate(pieces))


def test_missing_rows_leave_no_artefact(storage: LocalStorage) -> None:
    save_array(storage, "0.npy", np.zeros((3, 2), dtype=np.float32))
    with pytest.raises(ValueError, match="3 rows, not 4"):
        join_arrays(storage, "all.npy", ["0.npy"], rows=4)
    assert not storage.exists("all.npy")


def test_json_round_trip(storage: LocalStorage) -> None:
    save_json(storage, "x.json", {"b": [1, 2.5], "a": None})
    assert load_json(storage, "x.json") == {"a": None, "b": [1, 2.5]}
