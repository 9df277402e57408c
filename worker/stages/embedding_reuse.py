"""Plans a new embedding: which rows earlier embeddings have, and which must be computed."""

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
class EmbeddingPlan:
    """Row i of the features is row ``row[i]`` of ``sources[source[i]]``."""

    sources: tuple[str, ...]  # features of earlier embeddings, then shards
    source: npt.NDArray[np.int32]  # (N,)
    row: npt.NDArray[np.int64]  # (N,)
    shards: dict[str, Hashes]  # the images of each shard: every new image once
    reused: int  # rows that come from earlier embeddings


def plan_reuse(
    storage: Storage, folder: str, hashes: Hashes, earlier: Iterable[str], shard: int
) -> EmbeddingPlan:
    """Looks the images up in ``earlier`` folders, in their order, and puts the rest in shards."""
    wanted, first, place = np.unique(as_keys(hashes), return_index=True, return_inverse=True)
    source = np.full(len(wanted), -1, dtype=np.int32)
    row = np.zeros(len(wanted), dtype=np.int64)
    sources: list[str] = []
    for known in earlier:
        missing = np.flatnonzero(source < 0)
        if len(missing) == 0:
            break
        found, rows = _look_up(storage, known, wanted[missing])
        if found.any():
            source[missing[found]] = len(sources)
            row[missing[found]] = rows[found]
            sources.append(f"{known}/features.npy")
    missing = np.flatnonzero(source < 0)
    missing = missing[np.argsort(first[missing])]  # in the order of the dataset
    reused = int((source[place] >= 0).sum())
    places = np.arange(len(missing))
    source[missing] = len(sources) + places // shard
    row[missing] = places % shard
    shards = _make_shards(folder, hashes[first[missing]], shard)
    return EmbeddingPlan(
        sources=(*sources, *shards),
        source=source[place],
        row=row[place],
        shards=shards,
        reused=reused,
    )


def as_keys(hashes: Hashes) -> npt.NDArray[np.bytes_]:
    """Returns one sortable value per row: (N,)."""
    return np.ascontiguousarray(hashes).view("S32").reshape(-1)


def _look_up(
    storage: Storage, folder: str, wanted: npt.NDArray[np.bytes_]
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """Returns which of the wanted images a folder has, and their rows."""
    nothing = np.zeros(len(wanted), dtype=bool), np.zeros(len(wanted), dtype=np.int64)
    try:
        known = as_keys(load_array(storage, f"{folder}/hashes.npy"))
        rows = len(load_array(storage, f"{folder}/features.npy"))
    except FileNotFoundError:  # its job was not finished
        return nothing
    if rows != len(known) or rows == 0:
        return nothing
    order = np.argsort(known)
    place = np.minimum(np.searchsorted(known, wanted, sorter=order), rows - 1)
    found = known[order[place]] == wanted
    return found, order[place]


def _make_shards(folder: str, hashes: Hashes, size: int) -> dict[str, Hashes]:
    """Returns shards by key. The key is a hash of the content, so a shard of a crash is reused."""
    groups = [hashes[start : start + size] for start in range(0, len(hashes), size)]
    return {
        f"{folder}/shard-{hashlib.sha256(group.tobytes()).hexdigest()[:32]}.npy": group
        for group in groups
    }
