"""A two-dimensional map of a set by t-SNE, in which neighbors are close together.

Uses openTSNE on neighbors that are already mined, so the features are never all in memory.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from temi.errors import InvalidConfig, TemiError
from temi.standardize import Standardizer, chunks, fit_standardizer, unit_rows
from temi.training.projection import principal_directions

MIN_ROWS = 3
ITERATIONS = 750
_EARLY = 250  # iterations of early exaggeration
_EXAGGERATION = 12.0
_MIN_PERPLEXITY = 1.5  # below 1, even the nearest neighbor has less than full weight
_REPORT_EVERY = 10
_CHUNK_VALUES = 2**24  # features of neighbors in memory at a time: 64 MB
_SEED_RANGE = 2**32

Progress = Callable[[int, int], None]
"""Called with the number of finished iterations and the total."""


def fitting_perplexity(perplexity: float, n_rows: int) -> float:
    """Return the perplexity, reduced for small sets: t-SNE uses three times as many neighbors."""
    if n_rows < MIN_ROWS:
        raise TemiError(f"a map needs at least {MIN_ROWS} rows, but there are {n_rows}")
    if not perplexity > 1:
        raise InvalidConfig("perplexity", f"must be above 1, not {perplexity}")
    return min(perplexity, max(_MIN_PERPLEXITY, (n_rows - 1) / 3))


def neighbors_for(perplexity: float, n_rows: int) -> int:
    """Return the number of neighbors per row that a map with this perplexity needs."""
    return min(n_rows - 1, max(2, int(3 * perplexity)))


def map_rows(
    features: npt.NDArray[np.floating],
    neighbors: npt.NDArray[np.integer],
    *,
    perplexity: float = 30.0,
    seed: int = 0,
    threads: int = 1,
    progress: Progress | None = None,
) -> npt.NDArray[np.float32]:
    """Return coordinates (N, 2) centered at zero; the largest absolute coordinate is one.

    ``neighbors`` (N, k) needs at least `neighbors_for` neighbors per row. The same seed and number
    of threads give the same map.
    """
    from openTSNE import TSNEEmbedding, affinity, nearest_neighbors

    perplexity = fitting_perplexity(perplexity, len(features))
    near = np.ascontiguousarray(
        neighbors[:, : neighbors_for(perplexity, len(features))], dtype=np.int64
    )
    affinities = affinity.PerplexityBasedNN(
        perplexity=perplexity,
        knn_index=nearest_neighbors.PrecomputedNeighbors(near, _distances(features, near)),
        n_jobs=threads,
    )
    embedding = TSNEEmbedding(
        _start(features), affinities, n_jobs=threads, random_state=seed % _SEED_RANGE
    )
    phases = (
        (0, _EARLY, {"exaggeration": _EXAGGERATION, "momentum": 0.5}),
        (_EARLY, ITERATIONS - _EARLY, {"momentum": 0.8}),
    )
    for before, n_iter, settings in phases:
        embedding.optimize(
            n_iter,
            inplace=True,
            callbacks=_callback(progress, before),
            callbacks_every_iters=_REPORT_EVERY,
            **settings,
        )
    return _scaled(np.asarray(embedding))


def _distances(
    features: npt.NDArray[np.floating], neighbors: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return the distances between unit rows, sqrt(2 - 2 cos): (N, k)."""
    distances = np.empty(neighbors.shape, dtype=np.float64)
    size = max(1, _CHUNK_VALUES // max(1, neighbors.shape[1] * features.shape[1]))
    for rows in chunks(len(neighbors), size):
        own = unit_rows(features[rows])
        ids, inverse = np.unique(neighbors[rows], return_inverse=True)
        others = unit_rows(features[ids])[inverse.reshape(neighbors[rows].shape)]  # (n, k, D)
        cosines = np.einsum("nd,nkd->nk", own, others)
        distances[rows] = np.sqrt(np.maximum(0.0, 2.0 - 2.0 * cosines))
    return distances


def _start(features: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    """Return the first two principal components, scaled down: the initial layout of the map."""
    centered = fit_standardizer(features)
    centered = Standardizer(mean=centered.mean, std=np.ones_like(centered.std))
    directions = principal_directions(features, centered, 2)
    start = np.zeros((len(features), 2))
    for rows in chunks(len(features)):
        start[rows, : directions.shape[1]] = centered.apply(features[rows]) @ directions
    spread = start[:, 0].std()
    return start * (1e-4 / spread if spread > 0 else 1.0)


def _callback(progress: Progress | None, before: int) -> Callable[[int, float, object], None]:
    def report(iteration: int, _error: float, _embedding: object) -> None:
        if progress is not None:
            progress(before + iteration, ITERATIONS)

    return report


def _scaled(points: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    centered = points - (points.max(axis=0) + points.min(axis=0)) / 2
    furthest = np.abs(centered).max()
    return np.asarray(centered / furthest if furthest > 0 else centered, dtype=np.float32)
