"""The stored features of images: found by image hashes, and compared by cosines.

The files are memory-mapped and read in chunks, so that any number of images takes little memory.
Cosines are computed in float64 and rounded to millionths: they are equal on every machine.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from app.core.platform.errors import FeaturesMissing, QueueFull
from app.core.storage import Storage

if TYPE_CHECKING:
    from temi.neighbors.index import FeatureIndex

Hashes = npt.NDArray[np.bytes_]
Rows = npt.NDArray[np.int64]
Cosines = npt.NDArray[np.int32]
"""In millionths."""

INDEX_ROWS = 10_000  # above, an index is built; so many are compared within 50 ms
HASH = "S32"  # compares like bytes: only trailing zeros are stripped, on both sides
MILLION = 1_000_000
_HASH_ROWS = 10_000
_PREFIX_ROWS = 200_000
_OPEN_INDEXES = 4  # memory-mapped: an open one takes about a megabyte
_CHUNK_ROWS = 512  # as float64 they fit the cache of a core
_RUNNING = 2
_WAITING = 8  # of the 40 threads that answer requests
_WAIT_SECONDS = 20.0
_running = threading.BoundedSemaphore(_RUNNING)
_admitted = threading.BoundedSemaphore(_RUNNING + _WAITING)


@contextmanager
def computing() -> Iterator[None]:
    """Bounds how many threads read features at once, and how many wait for them."""
    if not _admitted.acquire(blocking=False):
        raise _too_many()
    try:
        if not _running.acquire(timeout=_WAIT_SECONDS):
            raise _too_many()
        try:
            # One core each: the threads of a matrix product wait for each other on busy cores.
            with _thread_pools().limit(limits=1, user_api="blas"):
                yield
        finally:
            _running.release()
    finally:
        _admitted.release()


class ScoredRows(NamedTuple):
    """Rows of features, each with the cosine of its features and a vector."""

    rows: Rows  # (M,)
    cosines: Cosines  # (M,)


@dataclass(frozen=True, kw_only=True)
class StoredFeatures:
    """Row i of `features` (N, D) belongs to the image with the hash in row i of `hashes`."""

    features: npt.NDArray[np.float32]
    hashes: npt.NDArray[np.uint8]  # (N, 32)
    index: "FeatureIndex | None" = None  # of many rows

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])

    def rows_of(self, hashes: Hashes) -> Rows:
        """The row of each hash: (M,), or -1 if there is none."""
        if not len(hashes):
            return np.empty(0, dtype=np.int64)
        wanted, inverse = np.unique(hashes, return_inverse=True)
        row_of = np.full(len(wanted), -1, dtype=np.int64)
        for start in range(0, len(self.hashes), _HASH_ROWS):
            chunk = self.hashes_at(slice(start, start + _HASH_ROWS))
            at = np.searchsorted(wanted, chunk).clip(max=len(wanted) - 1)
            hit = wanted[at] == chunk
            row_of[at[hit]] = start + np.flatnonzero(hit)
        return row_of[inverse]

    def row_of(self, sha256: str) -> int | None:
        """The first row of a hash; much faster than `rows_of`."""
        wanted = bytes.fromhex(sha256)
        prefix = np.frombuffer(wanted[:8], dtype=np.uint64)
        prefixes = self.hashes.view(np.uint64)[:, 0]
        for start in range(0, len(prefixes), _PREFIX_ROWS):
            for at in np.flatnonzero(prefixes[start : start + _PREFIX_ROWS] == prefix):
                if self.hashes[start + at].tobytes() == wanted:
                    return start + int(at)
        return None

    def all_rows_of(self, hashes: Hashes) -> Rows:
        """As `rows_of`; FeaturesMissing if one of them has no row."""
        rows = self.rows_of(hashes)
        if (rows < 0).any():
            raise missing()
        return rows

    def hashes_at(self, rows: Rows | slice) -> Hashes:
        return np.ascontiguousarray(self.hashes[rows]).view(HASH)[:, 0]

    def cosines(self, vectors: npt.NDArray[np.floating], rows: Rows | None = None) -> Cosines:
        """Cosines of vectors (V, D) with all rows, or with these: (V, M)."""
        units = unit_rows(vectors)
        count = len(self.features) if rows is None else len(rows)
        found = np.empty((len(units), count), dtype=np.int32)
        for chunk in row_chunks(count):
            part = self.features[chunk if rows is None else rows[chunk]].astype(np.float64)
            lengths = np.sqrt(np.einsum("nd,nd->n", part, part))
            products = units @ part.T / np.where(lengths > 0, lengths, 1.0)
            found[:, chunk] = np.rint(products * MILLION)
        return found

    def nearest(self, vector: npt.NDArray[np.floating], count: int) -> ScoredRows:
        """All rows, or with an index candidates for the `count` rows nearest to a vector (D,)."""
        if self.index is None:
            rows: Rows = np.arange(len(self.features))
            return ScoredRows(rows, self.cosines(vector[None])[0])
        rows = self.index.candidates(vector, count)
        return ScoredRows(rows, self.cosines(vector[None], rows)[0])


def index_key(folder: str) -> str:
    """Of the search index of an embedding, for more rows than can be compared one by one."""
    return f"{folder}/index.faiss"


def classifier_key(folder: str) -> str:
    """Of the classifier of ImageNet that belongs to the features, if their backbone has one."""
    return f"{folder}/classifier.safetensors"


def open_features(storage: Storage, folder: str | None) -> StoredFeatures:
    """The features in the folder of an embedding; FeaturesMissing if they are gone."""
    features, hashes = (_load(storage, f"{folder}/{name}.npy") for name in ("features", "hashes"))
    if features.ndim != 2 or hashes.dtype != np.uint8 or hashes.shape != (len(features), 32):
        raise missing()
    index = _open_index(storage, folder) if folder and len(features) > INDEX_ROWS else None
    return StoredFeatures(features=features, hashes=hashes, index=index)


def unit_rows(vectors: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Rows of length one; zero rows stay zero."""
    exact = np.asarray(vectors, dtype=np.float64)
    lengths = np.sqrt(np.einsum("nd,nd->n", exact, exact))[:, None]
    unit: npt.NDArray[np.float64] = exact / np.where(lengths > 0, lengths, 1.0)
    return unit


def row_chunks(count: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK_ROWS) for start in range(0, count, _CHUNK_ROWS))


def to_hashes(sha256s: list[str]) -> Hashes:
    return np.frombuffer(bytes.fromhex("".join(sha256s)), dtype=HASH)


def missing() -> FeaturesMissing:
    return FeaturesMissing(
        "The features of these images are not stored, or no longer. Cluster or predict the dataset "
        "again."
    )


def _load(storage: Storage, key: str) -> npt.NDArray[Any]:
    """Memory-mapped: only the rows that are used are read."""
    try:
        array: npt.NDArray[Any] = np.load(storage.path(key), mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise missing() from error
    return array


def _open_index(storage: Storage, folder: str) -> "FeatureIndex | None":
    try:
        return _read_index(storage.path(index_key(folder)))
    except FileNotFoundError:  # features of an earlier version: compared one by one
        return None


@lru_cache(_OPEN_INDEXES)
def _read_index(path: Path) -> "FeatureIndex":
    from temi.neighbors.index import FeatureIndex  # faiss takes a while to load

    return FeatureIndex(path)


@cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

    return ThreadpoolController()


def _too_many() -> QueueFull:
    return QueueFull("Other requests for similar images are being computed; retry in a moment.")
