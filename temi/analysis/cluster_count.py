"""How many clusters do the images have? Quick groupings into every number of clusters are compared.

Two figures tell how good a number is, without labels:

- stability: groupings of random parts of the images agree (adjusted Rand index). With too many
  clusters, where a group is divided is chance; with too few, which groups are joined is.
- modularity: the edges of the graph of nearest neighbors stay inside of clusters, more than by
  chance. It is low with too few clusters.

The score is their product, with modularity squared. Collections often have groups at several
levels, so up to three numbers are suggested.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from temi.config import MAX_AUTO_CLUSTERS
from temi.errors import TemiError
from temi.neighbors.search import mine_neighbors
from temi.standardize import Standardizer
from temi.training.projection import principal_directions
from temi.training.smoothing import GRAPH_NEIGHBORS, neighbor_graph, smooth

MIN_IMAGES_PER_CLUSTER = 10  # a smaller cluster is divided by chance
MAX_SUGGESTIONS = 3
SAMPLE = 5000  # images that are grouped: 25 for each of the most clusters

_STEP = 1.1  # between two numbers of clusters
_APART = 1.5  # least ratio of two suggestions
_PARTS = 6  # random parts of the images that are grouped
_PART = 0.8  # of the images
_DIRECTIONS = 64  # that groupings use
_ITERATIONS = 50  # of k-means


@dataclass(frozen=True, kw_only=True)
class CountPoint:
    n_clusters: int
    stability: float  # mean adjusted Rand index of groupings of random parts
    modularity: float  # mean over the groupings

    @property
    def score(self) -> float:
        return max(0.0, self.stability) * max(0.0, self.modularity) ** 2


@dataclass(frozen=True, kw_only=True)
class CountEstimate:
    points: tuple[CountPoint, ...]  # by rising number of clusters
    suggested: tuple[int, ...]  # the best first; empty if there are no groups

    @property
    def best(self) -> int:
        """The first suggestion, or the lowest number."""
        return self.suggested[0] if self.suggested else 2

    def as_dict(self) -> dict[str, Any]:
        points = [asdict(point) | {"score": point.score} for point in self.points]
        return {"points": points, "suggested": list(self.suggested)}


def estimate_cluster_count(
    features: npt.NDArray[np.floating],
    *,
    counts: Sequence[int] | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> CountEstimate:
    """Compare numbers of clusters, by default all from 2 to 200 in steps of a tenth.

    At most 5,000 images, chosen at random, are grouped; numbers of clusters that would be too small
    among them are left out.
    ``progress`` is called with the number of compared counts and their total.
    """
    if len(features) < 2:
        raise TemiError(f"two images are needed to count clusters, not {len(features)}")
    generator = np.random.default_rng(seed)
    rows, graph = _sample(features, generator)
    most = _largest(len(rows))
    counts = _default_counts(most) if counts is None else sorted(c for c in {*counts} if c <= most)
    parts = [_part(len(rows), generator) for _ in range(_PARTS)]
    points = []
    for number, n_clusters in enumerate(counts, start=1):
        points.append(_compare(rows, graph, parts, n_clusters))
        if progress is not None:
            progress(number, len(counts))
    return CountEstimate(points=tuple(points), suggested=suggest_counts(points))


def _largest(n_images: int) -> int:
    return max(2, min(MAX_AUTO_CLUSTERS, n_images // MIN_IMAGES_PER_CLUSTER))


def _default_counts(most: int) -> list[int]:
    """All numbers up to 10, then steps of a tenth."""
    counts = [2]
    while (following := max(counts[-1] + 1, round(counts[-1] * _STEP))) <= most:
        counts.append(following)
    return counts


def suggest_counts(points: Sequence[CountPoint]) -> tuple[int, ...]:
    """Return up to three numbers whose score is above those beside it, the best first."""
    suggested: list[int] = []
    for point in sorted(_peaks(points), key=lambda point: -point.score):
        apart = all(_ratio(point.n_clusters, other) >= _APART for other in suggested)
        if apart and point.score > 0 and len(suggested) < MAX_SUGGESTIONS:
            suggested.append(point.n_clusters)
    return tuple(suggested)


def _peaks(points: Sequence[CountPoint]) -> list[CountPoint]:
    scores = [-1.0, *(point.score for point in points), -1.0]
    return [
        point
        for point, before, after in zip(points, scores, scores[2:], strict=False)
        if point.score >= before and point.score >= after
    ]


def _ratio(one: int, other: int) -> float:
    return max(one, other) / min(one, other)


def _sample(
    features: npt.NDArray[np.floating], generator: np.random.Generator
) -> tuple[npt.NDArray[np.float32], sparse.csr_matrix]:
    """Return smoothed rows of at most SAMPLE images, and the graph of their neighbors."""
    if len(features) > SAMPLE:
        chosen = np.sort(generator.choice(len(features), SAMPLE, replace=False))
        features = np.asarray(features[chosen])
    k = min(GRAPH_NEIGHBORS, max(1, len(features) // 4))  # few images: stay within a group
    neighbors = mine_neighbors(features, k).ids
    rows = smooth(features, neighbors)
    zeros = np.zeros(rows.shape[1], dtype=np.float32)  # the rows are centered
    plain = Standardizer(mean=zeros, std=np.ones_like(zeros))
    directions = principal_directions(rows, plain, _DIRECTIONS)
    with threadpool_limits(limits=1):  # on several cores, products round differently
        return rows @ directions, neighbor_graph(neighbors)


def _part(n: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    return np.sort(generator.choice(n, max(2, round(_PART * n)), replace=False))


def _compare(
    rows: npt.NDArray[np.float32],
    graph: sparse.csr_matrix,
    parts: Sequence[npt.NDArray[np.int64]],
    n_clusters: int,
) -> CountPoint:
    # On several cores, k-means rounds differently.
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        groupings = [_group(rows, part, n_clusters, seed) for seed, part in enumerate(parts)]
    agreement = [adjusted_rand_score(one, other) for one, other in combinations(groupings, 2)]
    return CountPoint(
        n_clusters=n_clusters,
        stability=float(np.mean(agreement)),
        modularity=float(np.mean([modularity(graph, labels) for labels in groupings])),
    )


def _group(
    rows: npt.NDArray[np.float32], part: npt.NDArray[np.int64], n_clusters: int, seed: int
) -> npt.NDArray[np.int32]:
    """Group a part of the rows; the others go to the nearest center."""
    kmeans = KMeans(min(n_clusters, len(part)), n_init=1, max_iter=_ITERATIONS, random_state=seed)
    return np.asarray(kmeans.fit(rows[part]).predict(rows))


def modularity(graph: sparse.csr_matrix, labels: npt.NDArray[np.integer]) -> float:
    """Return the share of edges inside of clusters, less what chance would give."""
    degrees = np.asarray(graph.sum(axis=1), dtype=np.float64).ravel()
    total = degrees.sum()
    edges = graph.tocoo()
    inside = edges.data[labels[edges.row] == labels[edges.col]].sum(dtype=np.float64)
    sizes = np.bincount(labels, weights=degrees)
    return float(inside / total - np.square(sizes / total).sum())
