"""The bands of probabilities of a clustering, and what is known of each cluster's images in them.

The bands are quantiles of all images, so that the least sure images of every clustering have bands
of their own, whatever its probabilities mean. Edits do not change them.
"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, case, func, literal, select
from sqlalchemy.orm import Session

from app.core.clusterings.review.purity import Band
from app.core.clusterings.review.queries import Lineage, active_clusters, read_lineage
from app.core.clusterings.statistics import truncate
from app.core.platform.tables import CARRIED, EXCLUDED, Assignment, Cluster, Clustering, Review

Value = TypeVar("Value")
SHARES = (0.05, 0.1, 0.2, 0.35, 0.5, 0.7)  # of the images below each edge
_FINE_BINS = 1_000
_CACHED = 8  # clusterings


@dataclass(frozen=True, kw_only=True)
class ReviewedCluster:
    cluster: Cluster
    bands: list[Band]  # the least sure images first

    def total(self, field: str) -> int:
        return sum(getattr(band, field) for band in self.bands)

    @property
    def size(self) -> int:
        return self.total("right") + self.total("wrong") + self.total("unreviewed")


@dataclass(frozen=True, kw_only=True)
class Counts:
    """Of a revision; they do not depend on the answers."""

    edges: list[float]
    images: dict[int, npt.NDArray[np.int64]]  # by cluster: of each band
    doubts: dict[int, npt.NDArray[np.float64]]


@dataclass(frozen=True, kw_only=True)
class ReviewState:
    clustering: Clustering
    clusters: list[ReviewedCluster]
    edges: list[float]
    lineage: Lineage
    excluded: int


class Recent(Generic[Value]):
    """The values that were read last, by a key that changes with the rows."""

    def __init__(self) -> None:
        self._values: OrderedDict[tuple[object, ...], Value] = OrderedDict()
        self._lock = Lock()

    def get(self, key: tuple[object, ...], read: Callable[[], Value]) -> Value:
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = read()
        with self._lock:
            self._values[key] = value
            while len(self._values) > _CACHED:
                self._values.popitem(last=False)
        return value


_edges: Recent[list[float]] = Recent()
_counts: Recent[Counts] = Recent()


def read_state(session: Session, clustering: Clustering) -> ReviewState:
    key = (clustering.id, clustering.revision, clustering.image_count)
    counts = _counts.get(key, lambda: _read_counts(session, clustering))
    lineage = read_lineage(session, clustering.id)
    answers = _read_answers(session, clustering.id, counts.edges, lineage)
    n_bands = len(counts.edges) + 1
    nothing = np.zeros(n_bands, np.int64)
    clusters = []
    for cluster in active_clusters(session, clustering.id):
        number = cluster.cluster_id
        images, known = counts.images.get(number, nothing), answers[number]
        doubts = counts.doubts.get(number, nothing)
        bands = [
            Band(
                right=known[band, "right"],
                wrong=known[band, "wrong"],
                unreviewed=max(int(images[band]) - known[band, "right"] - known[band, "wrong"], 0),
                sampled=known[band, "sampled"],
                sampled_wrong=known[band, "sampled_wrong"],
                chosen=known[band, "chosen"],
                chosen_wrong=known[band, "chosen_wrong"],
                doubt=float(doubts[band]),
            )
            for band in range(n_bands)
        ]
        clusters.append(ReviewedCluster(cluster=cluster, bands=bands))
    excluded = int(counts.images.get(EXCLUDED, nothing).sum())
    return ReviewState(
        clustering=clustering,
        clusters=clusters,
        edges=counts.edges,
        lineage=lineage,
        excluded=excluded,
    )


def band_of(edges: list[float], probability: float) -> int:
    return int(np.searchsorted(edges, probability, side="right"))


def read_edges(session: Session, clustering: Clustering) -> list[float]:
    """The probabilities that separate the bands."""
    key = (clustering.id, clustering.image_count)
    return _edges.get(key, lambda: _read_edges(session, clustering.id))


def _read_edges(session: Session, clustering_id: str) -> list[float]:
    """Excluded images count, too: excluding one must not move the edges."""
    fine = truncate(Assignment.probability * _FINE_BINS)
    rows = session.execute(
        select(fine.label("bin"), func.count())
        .where(Assignment.clustering_id == clustering_id)
        .group_by("bin")
    )
    counts = np.zeros(_FINE_BINS + 1, np.int64)
    for number, count in rows:
        counts[min(max(number, 0), _FINE_BINS)] += count
    below = np.cumsum(counts)
    found = np.searchsorted(below, np.array(SHARES) * below[-1]) + 1
    return sorted({float(edge) / _FINE_BINS for edge in found if edge <= _FINE_BINS})


def _read_counts(session: Session, clustering: Clustering) -> Counts:
    edges = read_edges(session, clustering)
    band = _band(edges)
    rows = session.execute(
        select(Assignment.cluster_id, band, func.count(), func.avg(Assignment.probability))
        .where(Assignment.clustering_id == clustering.id)
        .group_by(Assignment.cluster_id, "band")
    )
    images: dict[int, npt.NDArray[np.int64]] = {}
    doubts: dict[int, npt.NDArray[np.float64]] = {}
    for number, index, count, mean in rows:
        images.setdefault(number, np.zeros(len(edges) + 1, np.int64))[index] = count
        doubts.setdefault(number, np.zeros(len(edges) + 1))[index] = 1 - mean
    return Counts(edges=edges, images=images, doubts=doubts)


def _band(edges: list[float]) -> ColumnElement[int]:
    """The number of the band of an assignment, in SQL."""
    if not edges:
        return literal(0).label("band")
    below = [(Assignment.probability < edge, number) for number, edge in enumerate(edges)]
    return case(*below, else_=len(edges)).label("band")


def _read_answers(
    session: Session, clustering_id: str, edges: list[float], lineage: Lineage
) -> "defaultdict[int, defaultdict[tuple[int, str], int]]":
    """Numbers of images by cluster, band, and what is known of them."""
    since: ColumnElement[float] = literal(0.0)
    if lineage.split_at:
        since = case(lineage.split_at, value=Review.cluster_id, else_=0.0)
    rows = session.execute(
        select(
            Review.cluster_id,
            Review.belongs_to,
            Assignment.cluster_id.label("current"),
            _band(edges),
            (
                (func.coalesce(Review.stratum, CARRIED) != CARRIED) & (Review.reviewed_at >= since)
            ).label("sampled"),
            func.count(),
        )
        .join(
            Assignment,
            (Assignment.clustering_id == Review.clustering_id)
            & (Assignment.image_id == Review.image_id),
        )
        .where(Review.clustering_id == clustering_id)
        .group_by(Review.cluster_id, Review.belongs_to, "current", "band", "sampled")
    )
    found: defaultdict[int, defaultdict[tuple[int, str], int]]
    found = defaultdict(lambda: defaultdict(int))
    for raw_asked, raw_said, current, band, sampled, count in rows:
        asked = lineage.now(raw_asked)
        said = None if raw_said is None else lineage.now(raw_said)
        if said == current:
            found[current][band, "right"] += count
        elif asked == current:
            found[current][band, "wrong"] += count
        # A right image that was moved away tells nothing more; a wrong one is part of the sample.
        if said != asked or current == asked:
            kind = "sampled" if sampled else "chosen"
            found[asked][band, kind] += count
            found[asked][band, f"{kind}_wrong"] += count * (said != asked)
    return found
