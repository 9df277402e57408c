"""Features sorted into cells: rows around a centroid stand next to each other in memory."""

from dataclasses import dataclass

import faiss
import numpy as np
import numpy.typing as npt

from temi.neighbors.parallel import Tally
from temi.neighbors.rows import Features, Floats, Ids, unit_blocks, unit_rows

# More cells mean fewer rows to look at for the same recall, but training them costs their square.
# Measured: about 600 are best for 100,000 rows, and 4000 beat 2000 clearly for a million.
_CELL_EXPONENT = 0.6
_FEWEST_ROWS_A_CELL = 16
_MOST_CELLS = 32_768  # cell numbers are sorted as 16 bits, which is several times faster
_TRAINING_ROWS_A_CELL = 16
_TRAINING_ROUNDS = 4

CellIds = npt.NDArray[np.int16]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Rows in the order of their cells. A place is a row's position in that order."""

    centroids: Floats  # (C, D), of length one
    starts: Ids  # (C + 1,), the first place of each cell
    row_at: Ids  # (N,), the row at each place
    cell_of: CellIds  # (N,), the cell of each row
    rows: npt.NDArray[np.floating]  # (N, D), unit rows by place, as float32 or float16

    def take(self, places: slice | Ids) -> Floats:
        return self.rows[places].astype(np.float32, copy=False)

    def nearest_cells(self, queries: Floats, count: int) -> CellIds:
        """Nearest first: (Q, count)."""
        _, cells = faiss.knn(queries, self.centroids, count, metric=faiss.METRIC_INNER_PRODUCT)
        narrow: CellIds = cells.astype(np.int16)
        return narrow


def cell_count(n: int) -> int:
    wanted = min(int(n**_CELL_EXPONENT), n // _FEWEST_ROWS_A_CELL, _MOST_CELLS)
    return max(1, wanted)


def build_cells(
    features: Features, dtype: npt.DTypeLike, rng: np.random.Generator, tally: Tally
) -> Cells:
    """Train centroids on a sample, then read the features twice: to assign and to sort them."""
    n = len(features)
    centroids = _train(features, cell_count(n), rng)
    cell = np.empty(n, dtype=np.int16)
    for start, block in unit_blocks(features):
        scores_and_ids = faiss.knn(block, centroids, 1, metric=faiss.METRIC_INNER_PRODUCT)
        cell[start : start + len(block)] = scores_and_ids[1][:, 0]
        tally.add(0.1 * len(block))
        tally.report()
    return sort_into_cells(features, centroids, cell, dtype)


def sort_into_cells(
    features: Features, centroids: Floats, cell: CellIds, dtype: npt.DTypeLike
) -> Cells:
    """The same cells again from what they were built with, wherever the features are read."""
    n, dim = features.shape
    row_at = np.argsort(cell, kind="stable")
    place_of = np.empty(n, dtype=np.int64)
    place_of[row_at] = np.arange(n)
    rows = np.empty((n, dim), dtype=dtype)
    for start, block in unit_blocks(features):
        rows[place_of[start : start + len(block)]] = block
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(centroids)))])
    return Cells(centroids=centroids, starts=starts, row_at=row_at, cell_of=cell, rows=rows)


def _train(features: Features, count: int, rng: np.random.Generator) -> Floats:
    n, dim = features.shape
    sampled = np.sort(rng.choice(n, min(n, _TRAINING_ROWS_A_CELL * count), replace=False))
    means = faiss.Kmeans(
        dim,
        count,
        niter=_TRAINING_ROUNDS,
        spherical=True,
        seed=int(rng.integers(2**31 - 1)),
        min_points_per_centroid=1,
        max_points_per_centroid=len(sampled),
    )
    means.train(unit_rows(features, sampled))
    return np.asarray(means.centroids, dtype=np.float32)
