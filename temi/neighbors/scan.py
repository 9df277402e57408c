"""Search the cells nearest to each row, cell by cell instead of row by row.

All queries that want a cell are multiplied with its rows in one matrix product. That is several
times faster than an index that goes from query to query, since such an index reads the rows of
a cell anew for each of them.
"""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import faiss
import numpy as np

from temi.neighbors.cells import Cells
from temi.neighbors.gpu import gpu_count, search_cells
from temi.neighbors.parallel import Tally, even_slices, run_pieces
from temi.neighbors.rows import Floats, Ids, without_self

_BATCH_ROWS = 65_536
# Pairs of a query and a cell that a thread sorts at once, about 30 bytes each.
_BATCH_PAIRS = 4_194_304
# Queries and candidates of one matrix product: small enough to stay in a core's cache.
_PRODUCT_QUERIES = 512
_PRODUCT_ROWS = 4096


Put = Callable[[Ids, Ids], None]
"""Told places and, for each, the places of its neighbors."""


def scan_cells(cells: Cells, k: int, probes: int, tally: Tally, *, weight: float) -> Ids:
    """The best ``k`` other rows in the ``probes`` cells nearest to every row: (N, k).

    A row whose cells hold fewer than ``k`` others is given more cells until none goes short.
    """
    n = len(cells.row_at)
    found = np.empty((n, k), dtype=np.int64)

    def put(places: Ids, others: Ids) -> None:
        found[cells.row_at[places]] = cells.row_at[others]  # whatever stands at -1 is replaced

    if gpu_count() > 0:
        short = _scan_on_gpu(cells, k, probes, tally, weight, put)
        _scan_until_full(cells, short, k, 4 * probes, tally, 0.0, put)
    else:
        _scan_until_full(cells, np.arange(n), k, probes, tally, weight, put)
    return found


def scan_part(cells: Cells, part: slice, k: int, probes: int, tally: Tally) -> Ids:
    """The same for the places of one part, by the CPU: (part, k), in the order of the places."""
    found = np.empty((part.stop - part.start, k), dtype=np.int64)

    def put(places: Ids, others: Ids) -> None:
        found[places - part.start] = cells.row_at[others]

    _scan_until_full(cells, np.arange(part.start, part.stop), k, probes, tally, 1.0, put)
    return found


def _scan_on_gpu(cells: Cells, k: int, probes: int, tally: Tally, weight: float, put: Put) -> Ids:
    """Returns the places that go short."""
    short = []
    for part, near in search_cells(cells.centroids, cells.take(slice(None)), probes, k + 1):
        places = np.arange(part.start, part.stop)
        others = without_self(near, places)
        put(places, others)
        short.append(places[others[:, -1] < 0])
        tally.add(weight * len(near))
        tally.report()
    return np.concatenate(short)


def _scan_until_full(
    cells: Cells, places: Ids, k: int, probes: int, tally: Tally, weight: float, put: Put
) -> None:
    while len(places):
        probes = min(probes, len(cells.centroids))
        short: list[Ids] = []

        def put_others(own: Ids, near: Ids, short: list[Ids] = short) -> None:
            others = without_self(near, own)
            put(own, others)
            short.append(own[others[:, -1] < 0])

        _scan(cells, places, k + 1, probes, tally, weight, put_others)
        places, probes, weight = np.concatenate(short), 4 * probes, 0.0


def _scan(
    cells: Cells,
    places: Ids,
    count: int,
    probes: int,
    tally: Tally,
    weight: float,
    put: Put,
) -> None:
    longest = min(_BATCH_ROWS, max(1, _BATCH_PAIRS // probes))

    def search(batch: slice) -> None:
        own = places[batch]
        put(own, _search_batch(cells, own, count, probes, lambda rows: tally.add(weight * rows)))

    run_pieces(search, even_slices(len(places), longest), tally)


def _search_batch(
    cells: Cells, places: Ids, count: int, probes: int, done: Callable[[float], None]
) -> Ids:
    """The best ``count`` places for each of ``places``, -1 where there are fewer: (B, count)."""
    best = faiss.ResultHeap(len(places), count, keep_max=True)
    for cell, wanted_by in _queries_by_cell(cells, places, probes):
        for first in range(cells.starts[cell], cells.starts[cell + 1], _PRODUCT_ROWS):
            ids = np.arange(first, min(first + _PRODUCT_ROWS, cells.starts[cell + 1]))
            base = cells.take(slice(first, first + len(ids)))  # (m, D)
            for start in range(0, len(wanted_by), _PRODUCT_QUERIES):
                subset = wanted_by[start : start + _PRODUCT_QUERIES]
                scores = cells.take(places[subset]) @ base.T  # (q, m)
                _add_scores(best, subset, scores, ids)
        done(len(wanted_by) / probes)
    best.finalize()
    found: Ids = best.I
    return found


def _queries_by_cell(cells: Cells, places: Ids, probes: int) -> Iterator[tuple[int, Ids]]:
    """Each cell with the queries that it is near to, as positions in ``places``."""
    nearest = np.empty((len(places), probes), dtype=np.int16)
    for start in range(0, len(places), _PRODUCT_ROWS):
        queries = cells.take(places[start : start + _PRODUCT_ROWS])
        nearest[start : start + len(queries)] = cells.nearest_cells(queries, probes)
    pairs = nearest.ravel()  # (B * probes,)
    by_cell = np.argsort(pairs, kind="stable")
    by_cell //= probes  # from the number of a pair to the number of its query
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
