"""An inverted file: the rows of each cell, around one centroid, are contiguous in memory."""

from dataclasses import dataclass

import faiss
import numpy as np
import numpy.typing as npt

from temi.neighbors.parallel import ProgressCounter
from temi.neighbors.rows import Features, Floats, Ids, unit_blocks, unit_rows

# With more cells, fewer rows are scanned for the same recall, but the training cost grows with the
# square of their number. Measured: about 600 are best for 100,000 rows, and 4000 are clearly
# better than 2000 for a million.
_CELL_EXPONENT = 0.6
_MIN_ROWS_PER_CELL = 16
_MAX_CELLS = 32_768  # cell ids are sorted as 16 bits, which is several times faster
_TRAINING_ROWS_PER_CELL = 16
_TRAINING_ITERATIONS = 4

CellIds = npt.NDArray[np.int16]


@dataclass(frozen=True, kw_only=True)
class Cells:
    """Unit rows in the order of their cells; a position is an index in that order."""

    centroids: Floats  # (C, D), of length one
    starts: Ids  # (C + 1,), the first position of each cell
    row_at: Ids  # (N,), the row at each position
    cell_of: CellIds  # (N,), the cell of each row
    rows: npt.NDArray[np.floating]  # (N, D), unit rows by position, as float32 or float16

    def take(self, positions: slice | Ids) -> Floats:
        """Return the unit rows at these positions as float32."""
        return self.rows[positions].astype(np.float32, copy=False)

    def nearest_cells(self, queries: Floats, n_probes: int) -> CellIds:
        """Return the nearest cells of each query, nearest first: (Q, n_probes)."""
        _, cells = faiss.knn(queries, self.centroids, n_probes, metric=faiss.METRIC_INNER_PRODUCT)
        narrow: CellIds = cells.astype(np.int16)
        return narrow


def cell_count(n: int) -> int:
    return max(1, min(int(n**_CELL_EXPONENT), n // _MIN_ROWS_PER_CELL, _MAX_CELLS))


def build_cells(
    features: Features, dtype: npt.DTypeLike, rng: np.random.Generator, counter: ProgressCounter
) -> Cells:
    """Train centroids on a sample, then read the features twice: to assign and to sort them."""
    n = len(features)
    centroids = _train_centroids(features, cell_count(n), rng)
    cell = np.empty(n, dtype=np.int16)
    for start, block in unit_blocks(features):
        scores_and_ids = faiss.knn(block, centroids, 1, metric=faiss.METRIC_INNER_PRODUCT)
        cell[start : start + len(block)] = scores_and_ids[1][:, 0]
        counter.add(0.1 * len(block))
        counter.report()
    return sort_into_cells(features, centroids, cell, dtype)


def sort_into_cells(
    features: Features, centroids: Floats, cell: CellIds, dtype: npt.DTypeLike
) -> Cells:
    """Sort the features by the given cell of each row; another process gets the same result."""
    n, dim = features.shape
    row_at = np.argsort(cell, kind="stable")
    position_of = np.empty(n, dtype=np.int64)
    position_of[row_at] = np.arange(n)
    rows = np.empty((n, dim), dtype=dtype)
    for start, block in unit_blocks(features):
        rows[position_of[start : start + len(block)]] = block
    starts = np.concatenate([[0], np.cumsum(np.bincount(cell, minlength=len(centroids)))])
    return Cells(centroids=centroids, starts=starts, row_at=row_at, cell_of=cell, rows=rows)


def _train_centroids(features: Features, count: int, rng: np.random.Generator) -> Floats:
    n, dim = features.shape
    sampled = np.sort(rng.choice(n, min(n, _TRAINING_ROWS_PER_CELL * count), replace=False))
    kmeans = faiss.Kmeans(
        dim,
        count,
        niter=_TRAINING_ITERATIONS,
        spherical=True,
        seed=int(rng.integers(2**31 - 1)),
        min_points_per_centroid=1,
        max_points_per_centroid=len(sampled),
    )
    kmeans.train(unit_rows(features, sampled))
    return np.asarray(kmeans.centroids, dtype=np.float32)
