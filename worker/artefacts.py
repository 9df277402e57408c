"""Arrays and tensors in the storage. An artefact that exists is whole and is not made again."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from app.core.storage import LocalStorage


def content_key(*parts: object) -> str:
    """A name made of everything that an artefact depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def save_array(storage: LocalStorage, key: str, array: npt.NDArray[Any]) -> None:
    with storage.writing(key) as file:
        np.save(file, array, allow_pickle=False)


def load_array(storage: LocalStorage, key: str) -> npt.NDArray[Any]:
    """Memory-mapped: a stage reads the rows it needs, not the file."""
    array: npt.NDArray[Any] = np.load(storage.path(key), mmap_mode="r", allow_pickle=False)
    return array


def join_arrays(storage: LocalStorage, key: str, pieces: Iterable[str], rows: int) -> None:
    """One array out of consecutive pieces, with one piece in memory at a time."""
    arrays = [load_array(storage, piece) for piece in pieces]
    with storage.writing(key) as file:
        joined = open_memmap(
            file.name, mode="w+", dtype=arrays[0].dtype, shape=(rows, arrays[0].shape[1])
        )
        start = 0
        for array in arrays:
            joined[start : start + len(array)] = array
            start += len(array)
        joined.flush()
        if start != rows:
            raise ValueError(f"pieces hold {start} rows, not {rows}")


def save_json(storage: LocalStorage, key: str, value: Mapping[str, Any]) -> None:
    storage.write(key, json.dumps(value, indent=2, sort_keys=True).encode())


def load_json(storage: LocalStorage, key: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(storage.read(key))
    return value
