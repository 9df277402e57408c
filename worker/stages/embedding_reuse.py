"""Which rows of a new embedding are known from earlier ones, and which are to be embedded."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from app.core.storage import Storage
from worker.stages.artifacts import load_array

Hashes = npt.NDArray[np.uint8]
"""sha256 of images: (N, 32)."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Row i of the features is row ``row[i]`` of ``pieces[piece[i]]``."""

    pieces: tuple[str, ...]  # features of earlier embeddings, then shards
    piece: npt.NDArray[np.int32]  # (N,)
    row: npt.NDArray[np.int64]  # (N,)
    shards: dict[str, Hashes]  # what each shard is to hold: every new image once
    reused: int  # rows that come from earlier embeddings


def plan_reuse(
    storage: Storage, folder: str, hashes: Hashes, earlier: Iterable[str], shard: int
) -> Plan:
    """Look the images up in ``earlier`` folders, in their order, and cut the rest into shards."""
    wanted, first, place = np.unique(as_keys(hashes), return_index=True, return_inverse=True)
    piece = np.full(len(wanted), -1, dtype=np.int32)
    row = np.zeros(len(wanted), dtype=np.int64)
    pieces: list[str] = []
    for known in earlier:
        missing = np.flatnonzero(piece < 0)
        if len(missing) == 0:
            break
        found, rows = _look_up(storage, known, wanted[missing])
        if found.any():
            piece[missing[found]] = len(pieces)
            row[missing[found]] = rows[found]
            pieces.append(f"{known}/features.npy")
    missing = np.flatnonzero(piece < 0)
    missing = missing[np.argsort(first[missing])]  # in the order of the dataset
    reused = int((piece[place] >= 0).sum())
    places = np.arange(len(missing))
    piece[missing] = len(pieces) + places // shard
    row[missing] = places % shard
    shards = _cut(folder, hashes[first[missing]], shard)
    return Plan(
        pieces=(*pieces, *shards),
        piece=piece[place],
        row=row[place],
        shards=shards,
        reused=reused,
    )


def as_keys(hashes: Hashes) -> npt.NDArray[np.bytes_]:
    """One sortable value a row: (N,)."""
    return np.ascontiguousarray(hashes).view("S32").reshape(-1)


def _look_up(
    storage: Storage, folder: str, wanted: npt.NDArray[np.bytes_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Which of the wanted ones a folder has, and in which row."""
    nothing = np.zeros(len(wanted), dtype=bool), np.zeros(len(wanted), dtype=np.int64)
    try:
        known = as_keys(load_array(storage, f"{folder}/hashes.npy"))
        rows = len(load_array(storage, f"{folder}/features.npy"))
    except FileNotFoundError:  # given up before it was done
        return nothing
    if rows != len(known) or rows == 0:
        return nothing
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), rows - 1)
    found = known[order[place]] == wanted
    return found, order[place]


def _cut(folder: str, hashes: Hashes, size: int) -> dict[str, Hashes]:
    """A shard is named after what it holds, so that one found after a crash is the right one."""
    groups = [hashes[start : start + size] for start in range(0, len(hashes), size)]
    return {
        f"{folder}/shard-{hashlib.sha256(group.tobytes()).hexdigest()[:32]}.npy": group
        for group in groups
    }
