"""Exact search: every row against every row, in blocks that fit into memory."""

from typing import Any

import faiss
import numpy as np

from temi.neighbors.gpu import gpu_count, nearest_on_gpu
from temi.neighbors.parallel import Progress, Tally, even_slices, run_pieces
from temi.neighbors.rows import Features, Floats, Ids, read_units, unit_blocks, without_self

# Queries of one call: enough for matrix products near the peak, few enough to report often.
_QUERY_ROWS = 2048


def exact_neighbors(
    features: Features, k: int, *, memory_bytes: int, progress: Progress | None = None
) -> Ids:
    """The ``k`` most similar other rows of every row: (N, k).

    ``memory_bytes`` bounds the queries that are held at once. Features that fit are read once,
    larger ones as many times as they exceed it.
    """
    n, dim = features.shape
    found = np.empty((n, k), dtype=np.int64)
    tally = Tally(n, progress)
    held = _held_rows(n, dim, k + 1, memory_bytes)
    for start in range(0, n, held):
        stop = min(start + held, n)
        queries = read_units(features, start, stop)
        ids = nearest(features, queries, k + 1, tally, everything=len(queries) == n)
        for rows in even_slices(len(ids), _QUERY_ROWS):
            own = np.arange(start + rows.start, start + rows.stop)
            found[own] = without_self(ids[rows], own)
    return found


def exact_part(features: Features, part: slice, k: int, tally: Tally) -> Ids:
    """The same for a part of the rows, all of which are held: (part, k)."""
    own = np.arange(part.start, part.stop)
    queries = read_units(features, part.start, part.stop)
    return without_self(nearest(features, queries, k + 1, tally), own)


def nearest(
    features: Features,
    queries: Floats,
    count: int,
    tally: Tally,
    *,
    everything: bool = False,
    weight: float = 1.0,
) -> Ids:
    """The best ``count`` rows of each query, best first: (Q, count).

    With ``everything`` the queries are the features themselves, and nothing is read again.
    ``weight`` is what a query counts in the tally.
    """
    best = faiss.ResultHeap(len(queries), count, keep_max=True)
    blocks = [(0, queries)] if everything else unit_blocks(features)
    for offset, base in blocks:
        _add_block(best, queries, base, offset, tally, weight * len(base) / len(features))
    best.finalize()
    ids: Ids = best.I
    return ids


def _add_block(
    best: Any, queries: Floats, base: Floats, offset: int, tally: Tally, weight: float
) -> None:
    """Let the candidates of one block into the best ones so far."""
    count = min(best.k, len(base))

    def add(rows: slice, scores: Floats, where: Ids) -> None:
        best.add_result_subset(np.arange(rows.start, rows.stop), scores, where + offset)
        tally.add(weight * len(scores))

    def look(rows: slice) -> None:
        metric = faiss.METRIC_INNER_PRODUCT
        add(rows, *faiss.knn(queries[rows], base, count, metric=metric))

    if gpu_count() > 0:
        for rows, scores, where in nearest_on_gpu(queries, base, count):
            add(rows, scores, where)
            tally.report()
    else:
        run_pieces(look, even_slices(len(queries), _QUERY_ROWS), tally)


def _held_rows(n: int, dim: int, count: int, memory_bytes: int) -> int:
    """How many queries fit with their best ``count`` candidates so far."""
    bytes_a_row = 4 * dim + 12 * count
    return int(np.clip(memory_bytes // bytes_a_row, min(_QUERY_ROWS, n), n))
