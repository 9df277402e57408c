"""Arrays and JSON files in the storage. An artifact that exists is complete and is reused."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from app.core.platform.activity import report_activity
from app.core.storage import Storage
from temi.standardize import chunks


def content_key(*parts: object) -> str:
    """Returns a hash of everything that an artifact depends on."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]


def save_array(storage: Storage, key: str, array: npt.NDArray[Any]) -> None:
    with storage.writing(key) as file:
        np.save(file, array, allow_pickle=False)


def load_array(storage: Storage, key: str) -> npt.NDArray[Any]:
    """Returns the array memory-mapped: a stage reads the rows it needs, not the file."""
    array: npt.NDArray[Any] = np.load(storage.path(key), mmap_mode="r", allow_pickle=False)
    return array


def gather_rows(
    storage: Storage,
    key: str,
    sources: Sequence[str],
    source: npt.NDArray[np.integer],
    row: npt.NDArray[np.integer],
) -> None:
    """Writes an array whose row i is row ``row[i]`` of ``sources[source[i]]``, in chunks."""
    opened = cache(lambda number: load_array(storage, sources[number]))  # one download each
    first = opened(int(source[0]))
    with storage.writing(key) as file:
        shape = (len(source), first.shape[1])
        gathered = open_memmap(file.name, mode="w+", dtype=first.dtype, shape=shape)
        for rows in chunks(len(source)):
            for number in np.unique(source[rows]):
                here = np.flatnonzero(source[rows] == number)
                gathered[rows.start + here] = opened(int(number))[row[rows][here]]
            report_activity()
        gathered.flush()


def save_json(storage: Storage, key: str, value: Mapping[str, Any]) -> None:
    storage.write(key, json.dumps(value, indent=2, sort_keys=True).encode())


def load_json(storage: Storage, key: str) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(storage.read(key))
    return value
