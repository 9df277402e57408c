"""Scans the cells nearest to each row, cell by cell instead of query by query.

All queries that probe a cell are multiplied with its rows in one matrix product. That is several
times faster than an index that processes one query after the other, because such an index reads
the rows of a cell again for each query.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import faiss
import numpy as np

from temi.neighbors.cells import Cells
from temi.neighbors.gpu import gpu_count, search_ivf
from temi.neighbors.parallel import ProgressCounter, even_slices, run_in_threads
from temi.neighbors.rows import Floats, Ids, without_self

_BATCH_ROWS = 65_536
# Pairs of a query and a cell that a thread sorts at a time, about 30 bytes each.
_BATCH_PAIRS = 4_194_304
# Queries and candidates of one matrix product: small enough to stay in a core's cache.
_PRODUCT_QUERIES = 512
_PRODUCT_ROWS = 4096


Store = Callable[[Ids, Ids], None]
"""Called with positions (B,) and the positions of their neighbors (B, k)."""


def scan_cells(
    cells: Cells, k: int, n_probes: int, counter: ProgressCounter, *, weight: float
) -> Ids:
    """Return the ``k`` nearest other rows in the ``n_probes`` cells nearest to each row: (N, k).

    For a row whose cells contain fewer than ``k`` other rows, more cells are scanned.
    """
    n = len(cells.row_at)
    found = np.empty((n, k), dtype=np.int64)

    def store(positions: Ids, neighbors: Ids) -> None:
        # Rows with a -1 are incomplete and are stored again later.
        found[cells.row_at[positions]] = cells.row_at[neighbors]

    if gpu_count() > 0:
        incomplete = _scan_on_gpu(cells, k, n_probes, counter, weight, store)
        _scan_until_complete(cells, incomplete, k, 4 * n_probes, counter, 0.0, store)
    else:
        _scan_until_complete(cells, np.arange(n), k, n_probes, counter, weight, store)
    return found


def scan_part(cells: Cells, part: slice, k: int, n_probes: int, counter: ProgressCounter) -> Ids:
    """Do the same for a slice of positions, on the CPU: (part, k), in the order of positions."""
    found = np.empty((part.stop - part.start, k), dtype=np.int64)

    def store(positions: Ids, neighbors: Ids) -> None:
        found[positions - part.start] = cells.row_at[neighbors]

    positions = np.arange(part.start, part.stop)
    _scan_until_complete(cells, positions, k, n_probes, counter, 1.0, store)
    return found


def _scan_on_gpu(
    cells: Cells, k: int, n_probes: int, counter: ProgressCounter, weight: float, store: Store
) -> Ids:
    """Scan all positions once; returns those with fewer than ``k`` neighbors."""
    incomplete = []
    for part, near in search_ivf(cells.centroids, cells.take(slice(None)), n_probes, k + 1):
        positions = np.arange(part.start, part.stop)
        neighbors = without_self(near, positions)
        store(positions, neighbors)
        incomplete.append(positions[neighbors[:, -1] < 0])
        counter.add(weight * len(near))
        counter.report()
    return np.concatenate(incomplete)


def _scan_until_complete(
    cells: Cells,
    positions: Ids,
    k: int,
    n_probes: int,
    counter: ProgressCounter,
    weight: float,
    store: Store,
) -> None:
    """Scan with more and more probes until every position has ``k`` neighbors."""
    while len(positions):
        n_probes = min(n_probes, len(cells.centroids))
        incomplete: list[Ids] = []

        def store_neighbors(own: Ids, near: Ids, incomplete: list[Ids] = incomplete) -> None:
            neighbors = without_self(near, own)
            store(own, neighbors)
            incomplete.append(own[neighbors[:, -1] < 0])

        _scan(cells, positions, k + 1, n_probes, counter, weight, store_neighbors)
        positions, n_probes, weight = np.concatenate(incomplete), 4 * n_probes, 0.0


def _scan(
    cells: Cells,
    positions: Ids,
    count: int,
    n_probes: int,
    counter: ProgressCounter,
    weight: float,
    store: Store,
) -> None:
    longest = min(_BATCH_ROWS, max(1, _BATCH_PAIRS // n_probes))

    def add_progress(rows: float) -> None:
        counter.add(weight * rows)

    def search(batch: slice) -> None:
        own = positions[batch]
        store(own, _search_batch(cells, own, count, n_probes, add_progress))

    run_in_threads(search, even_slices(len(positions), longest), counter)


def _search_batch(
    cells: Cells, positions: Ids, count: int, n_probes: int, add_progress: Callable[[float], None]
) -> Ids:
    """Return the ``count`` nearest positions of each position, padded with -1: (B, count)."""
    best = faiss.ResultHeap(len(positions), count, keep_max=True)
    for cell, queries in _queries_by_cell(cells, positions, n_probes):
        for first in range(cells.starts[cell], cells.starts[cell + 1], _PRODUCT_ROWS):
            ids = np.arange(first, min(first + _PRODUCT_ROWS, cells.starts[cell + 1]))
            base = cells.take(slice(first, first + len(ids)))  # (m, D)
            for start in range(0, len(queries), _PRODUCT_QUERIES):
                subset = queries[start : start + _PRODUCT_QUERIES]
                scores = cells.take(positions[subset]) @ base.T  # (q, m)
                _add_scores(best, subset, scores, ids)
        add_progress(len(queries) / n_probes)
    best.finalize()
    found: Ids = best.I
    return found


def _queries_by_cell(cells: Cells, positions: Ids, n_probes: int) -> Iterator[tuple[int, Ids]]:
    """Yield each cell with the queries that probe it, as indices into ``positions``."""
    nearest = np.empty((len(positions), n_probes), dtype=np.int16)
    for start in range(0, len(positions), _PRODUCT_ROWS):
        queries = cells.take(positions[start : start + _PRODUCT_ROWS])
        nearest[start : start + len(queries)] = cells.nearest_cells(queries, n_probes)
    pairs = nearest.ravel()  # (B * n_probes,)
    by_cell = np.argsort(pairs, kind="stable")
    by_cell //= n_probes  # from the index of a pair to the index of its query
    ends = np.cumsum(np.bincount(pairs, minlength=len(cells.centroids))).tolist()
    for cell, (start, end) in enumerate(pairwise([0, *ends])):
        if end > start:
            yield cell, by_cell[start:end]


def _add_scores(best: Any, subset: Ids, scores: Floats, ids: Ids) -> None:
    best.heaps.addn_query_subset_with_ids(
        len(subset),
        faiss.swig_ptr(subset),
        len(ids),
        faiss.swig_ptr(scores),
        faiss.swig_ptr(ids),
        0,  # the same ids for every query
    )
