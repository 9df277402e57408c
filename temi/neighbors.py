"""Exact nearest neighbors by cosine similarity, block against block."""

from collections.abc import Callable

import faiss
import numpy as np
import numpy.typing as npt

from temi.errors import InvalidConfig, TemiError

# Candidates normalised and scored at once: 16384 rows of 1280 numbers are 84 MB.
_BASE_ROWS = 16384

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]


def mine_neighbors(
    features: npt.NDArray[np.floating],
    k: int,
    *,
    block_rows: int = 4096,
    progress: Callable[[int, int], None] | None = None,
) -> Ids:
    """The ``k`` most similar rows of every row, nearest first: (N, k).

    A row is left out of its own list by its id, never by its rank: an exact duplicate is as
    similar to the row as the row itself. ``k`` is clipped to N - 1. ``features`` may be a
    memory map; only one block of queries and one block of candidates are held at a time.
    """
    if k < 1:
        raise InvalidConfig("n_neighbors", "must be at least 1")
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    n = features.shape[0]
    k = min(k, max(n - 1, 0))
    found = np.empty((n, k), dtype=np.int64)
    if k == 0:
        return found
    search = _search_function()
    for start in range(0, n, block_rows):
        stop = min(start + block_rows, n)
        queries = _unit_rows(features, start, stop)
        ids = _nearest(search, queries, features, k + 1)
        found[start:stop] = _without_self(ids, np.arange(start, stop))
        if progress is not None:
            progress(stop, n)
    return found


Search = Callable[[Floats, Floats, int], tuple[Floats, Ids]]


def _search_function() -> Search:
    """On a GPU if faiss was built for one and finds one."""
    metric = faiss.METRIC_INNER_PRODUCT
    if getattr(faiss, "get_num_gpus", lambda: 0)() > 0:
        resources = faiss.StandardGpuResources()
        return lambda queries, base, k: faiss.knn_gpu(resources, queries, base, k, metric=metric)
    return lambda queries, base, k: faiss.knn(queries, base, k, metric=metric)


def _nearest(
    search: Search, queries: Floats, features: npt.NDArray[np.floating], count: int
) -> Ids:
    """Best ids for each query, kept up to date while the candidate blocks go by: (B, count)."""
    best = np.empty((len(queries), 0), dtype=np.float32)
    ids = np.empty((len(queries), 0), dtype=np.int64)
    for start in range(0, features.shape[0], _BASE_ROWS):
        base = _unit_rows(features, start, min(start + _BASE_ROWS, features.shape[0]))
        scores, where = search(queries, base, min(count, len(base)))
        best = np.concatenate([best, scores], axis=1)
        ids = np.concatenate([ids, where + start], axis=1)
        order = np.argsort(-best, axis=1, kind="stable")[:, :count]
        best = np.take_along_axis(best, order, axis=1)
        ids = np.take_along_axis(ids, order, axis=1)
    return ids


def _without_self(ids: Ids, own: Ids) -> Ids:
    """Each row loses one entry: itself where it is listed, else the least similar one."""
    is_self = ids == own[:, None]
    dropped = np.where(is_self.any(axis=1), is_self.argmax(axis=1), ids.shape[1] - 1)
    keep = np.arange(ids.shape[1]) != dropped[:, None]
    others: Ids = ids[keep].reshape(len(ids), ids.shape[1] - 1)
    return others


def _unit_rows(features: npt.NDArray[np.floating], start: int, stop: int) -> Floats:
    rows = np.array(features[start:stop], dtype=np.float32, order="C")
    if not np.isfinite(rows).all():
        raise TemiError("features contain NaN or infinity")
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    unit: Floats = rows / np.maximum(norms, 1e-12)
    return unit
