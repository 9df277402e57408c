"""Exact search: compares all rows with all rows, in blocks that fit into memory."""

from typing import Any

import faiss
import numpy as np

from temi.neighbors.gpu import gpu_count, knn_on_gpu
from temi.neighbors.parallel import Progress, ProgressCounter, even_slices, run_in_threads
from temi.neighbors.rows import Features, Floats, Ids, read_unit_rows, unit_blocks, without_self

# Queries per call: enough for matrix products near the peak, few enough for frequent reports.
_QUERY_ROWS = 2048


def exact_neighbors(
    features: Features, k: int, *, memory_bytes: int, progress: Progress | None = None
) -> Ids:
    """Return the ``k`` most similar other rows of every row: (N, k).

    ``memory_bytes`` limits the queries in memory. Features that fit are read once; larger ones
    are read once for each block of queries.
    """
    n, dim = features.shape
    found = np.empty((n, k), dtype=np.int64)
    counter = ProgressCounter(n, progress)
    block_rows = _queries_per_block(n, dim, k + 1, memory_bytes)
    for start in range(0, n, block_rows):
        stop = min(start + block_rows, n)
        queries = read_unit_rows(features, start, stop)
        ids = nearest(features, queries, k + 1, counter, all_rows=len(queries) == n)
        for rows in even_slices(len(ids), _QUERY_ROWS):
            own = np.arange(start + rows.start, start + rows.stop)
            found[own] = without_self(ids[rows], own)
    return found


def exact_part(features: Features, part: slice, k: int, counter: ProgressCounter) -> Ids:
    """Return the neighbors of a part of the rows, all of them in memory: (part, k)."""
    own = np.arange(part.start, part.stop)
    queries = read_unit_rows(features, part.start, part.stop)
    return without_self(nearest(features, queries, k + 1, counter), own)


def nearest(
    features: Features,
    queries: Floats,
    count: int,
    counter: ProgressCounter,
    *,
    all_rows: bool = False,
    weight: float = 1.0,
) -> Ids:
    """Return the ``count`` most similar rows of each query, most similar first: (Q, count).

    With ``all_rows`` the queries are all rows of the features, which are not read again.
    ``weight`` is the progress of one query.
    """
    best = faiss.ResultHeap(len(queries), count, keep_max=True)
    blocks = [(0, queries)] if all_rows else unit_blocks(features)
    for offset, base in blocks:
        _search_block(best, queries, base, offset, counter, weight * len(base) / len(features))
    best.finalize()
    ids: Ids = best.I
    return ids


def _search_block(
    best: Any,
    queries: Floats,
    base: Floats,
    offset: int,
    counter: ProgressCounter,
    weight: float,
) -> None:
    """Merge the nearest rows of one block into the best ones so far."""
    count = min(best.k, len(base))

    def merge(rows: slice, scores: Floats, ids: Ids) -> None:
        best.add_result_subset(np.arange(rows.start, rows.stop), scores, ids + offset)
        counter.add(weight * len(scores))

    def search(rows: slice) -> None:
        metric = faiss.METRIC_INNER_PRODUCT
        merge(rows, *faiss.knn(queries[rows], base, count, metric=metric))

    if gpu_count() > 0:
        for rows, scores, ids in knn_on_gpu(queries, base, count):
            merge(rows, scores, ids)
            counter.report()
    else:
        run_in_threads(search, even_slices(len(queries), _QUERY_ROWS), counter)


def _queries_per_block(n: int, dim: int, count: int, memory_bytes: int) -> int:
    """Return how many queries fit in memory with their best ``count`` candidates so far."""
    bytes_per_row = 4 * dim + 12 * count
    return int(np.clip(memory_bytes // bytes_per_row, min(_QUERY_ROWS, n), n))
