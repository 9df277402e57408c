"""Smooths rows over the graph of nearest neighbors, to mine the pairs of a training run.

The features of one image are noisy. A mean over the image, its neighbors and theirs is less so:
nearest neighbors by smoothed rows share the class of their image more often. The heads see plain
features: they need no graph for a new image, and with smoothed inputs their solutions vary more.
"""

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.neighbors.search import mine_neighbors
from temi.standardize import Standardizer, chunks, fit_standardizer
from temi.training.projection import principal_directions
from temi.training.sampling import count_neighbors

# Chosen on five sets of photos (docs/quality.md).
GRAPH_NEIGHBORS = 10  # edges of an image in the graph
STEPS = 5  # a row becomes a mean over images up to this many edges away
SHARE = 0.8  # of the neighbors in the mean of a step; the rest is the image itself
_DIRECTIONS = 256
_WHITENING = 0.25  # 0 keeps the variance of a direction, 1 makes all variances equal
_COLUMNS = 32  # smoothed at a time, to bound the memory of the copies

Rows = npt.NDArray[np.float32]


def smoothed_pairs(
    features: npt.NDArray[np.floating], neighbors: npt.NDArray[np.integer], n_neighbors: int
) -> npt.NDArray[np.int64]:
    """Return the neighbors by smoothed rows (N, k); ``neighbors`` are those by plain features."""
    return mine_neighbors(smooth(features, neighbors), n_neighbors).ids


def smooth(features: npt.NDArray[np.floating], neighbors: npt.NDArray[np.integer]) -> Rows:
    """Return whitened rows, smoothed over the graph, centered and of length one: (N, P)."""
    count_neighbors(neighbors)  # refuses ids that are no rows
    rows = _unit(_whiten(features))
    rows = diffuse(rows, neighbors[:, :GRAPH_NEIGHBORS])
    rows -= rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    return _unit(rows)


def diffuse(rows: Rows, neighbors: npt.NDArray[np.integer]) -> Rows:
    """Repeat: row <- (1 - SHARE) * its first value + SHARE * mean of the rows beside it."""
    beside = random_walk(neighbors)
    smoothed = np.empty_like(rows)
    for start in range(0, rows.shape[1], _COLUMNS):
        columns = slice(start, start + _COLUMNS)
        first = np.ascontiguousarray(rows[:, columns])
        block = first
        for _ in range(STEPS):
            block = (1 - SHARE) * first + SHARE * (beside @ block)
        smoothed[:, columns] = block
    return smoothed


def neighbor_graph(neighbors: npt.NDArray[np.integer]) -> sparse.csr_matrix:
    """The symmetric graph of the neighbors; edges in both directions count twice."""
    n, k = neighbors.shape
    ends = np.asarray(neighbors, dtype=np.int64).ravel()
    starts = np.repeat(np.arange(n), k)
    present = ends >= 0
    ones = np.ones(int(present.sum()), dtype=np.float32)
    edges = sparse.csr_matrix((ones, (starts[present], ends[present])), shape=(n, n))
    return sparse.csr_matrix(edges + edges.T)


def random_walk(neighbors: npt.NDArray[np.integer]) -> sparse.csr_matrix:
    """The graph of the neighbors; the weights of a row add up to 1."""
    graph = neighbor_graph(neighbors)
    degrees = np.asarray(graph.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1 / np.maximum(degrees, 1)) @ graph).astype(np.float32)


def _whiten(features: npt.NDArray[np.floating]) -> Rows:
    """Center, keep the directions of largest variance, and reduce the differences in variance."""
    mean = fit_standardizer(features).mean
    centered = Standardizer(mean=mean, std=np.ones_like(mean))
    directions = principal_directions(features, centered, min(_DIRECTIONS, features.shape[1]))
    rows = np.empty((len(features), directions.shape[1]), dtype=np.float32)
    with threadpool_limits(limits=1, user_api="blas"):  # on several cores, it rounds differently
        for block in chunks(len(features)):
            rows[block] = centered.apply(features[block]) @ directions
    spread = np.sqrt(np.square(rows, dtype=np.float64).mean(axis=0))  # of each direction
    largest = float(spread.max()) or 1.0
    # Directions without variance hold only rounding errors.
    scale = np.where(spread > 1e-6 * largest, np.maximum(spread / largest, 1e-6), np.inf)
    rows *= (scale**-_WHITENING).astype(np.float32)
    return rows


def _unit(rows: Rows) -> Rows:
    """Scale rows to length one in place; zero rows stay zero."""
    for block in chunks(len(rows)):
        rows[block] /= np.maximum(np.linalg.norm(rows[block], axis=1, keepdims=True), 1e-12)
    return rows
