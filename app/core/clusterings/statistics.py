"""Statistics of a clustering, computed by the database."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Integer, func, select
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.orm import Session
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from app.core.platform.tables import EXCLUDED, Assignment, Cluster, Clustering, Image

_FINE_BINS = 1_000  # of the probability: fine enough for the median


class truncate(FunctionElement[int]):  # noqa: N801 - reads as the SQL function it is
    """The integer part of a non-negative number; casts differ between the databases."""

    type = Integer()
    inherit_cache = True


@compiles(truncate, "sqlite")
def _sqlite(element: truncate, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST({compiler.process(element.clauses, **options)} AS INTEGER)"


@compiles(truncate, "postgresql")
def _postgresql(element: truncate, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(floor({compiler.process(element.clauses, **options)}) AS INTEGER)"


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """Statistics of the images in clusters, without excluded images."""

    revision: int
    images: int
    excluded_images: int
    clusters: int
    empty_clusters: int
    sizes: list[int]  # of all clusters, largest first
    size_kl: float | None  # KL of the sizes to equal sizes
    mean_probability: float | None
    median_probability: float | None
    probability_counts: npt.NDArray[np.int64]  # (1000,) images by probability


@dataclass(frozen=True, kw_only=True)
class Confusion:
    """Counts of images by cluster and true label, for the largest of both."""

    counts: npt.NDArray[np.int64]  # (clusters, labels)
    clusters: list[str]
    labels: list[str]


def statistics(session: Session, clustering: Clustering) -> Statistics:
    sizes = session.scalars(
        select(Cluster.size)
        .where(Cluster.clustering_id == clustering.id, Cluster.active)
        .order_by(Cluster.size.desc())
    ).all()
    excluded = session.scalar(
        select(func.count())
        .select_from(Assignment)
        .where(Assignment.clustering_id == clustering.id, Assignment.cluster_id == EXCLUDED)
    )
    mean = session.scalar(
        select(func.avg(Assignment.probability)).where(
            Assignment.clustering_id == clustering.id, Assignment.cluster_id != EXCLUDED
        )
    )
    counts = _probability_counts(session, clustering.id)
    return Statistics(
        revision=clustering.revision,
        images=sum(sizes),
        excluded_images=excluded or 0,
        clusters=len(sizes),
        empty_clusters=sum(size == 0 for size in sizes),
        sizes=list(sizes),
        size_kl=_size_kl(np.asarray(sizes)),
        mean_probability=mean,
        median_probability=_median(counts),
        probability_counts=counts,
    )


def cluster_sizes(session: Session, clustering: Clustering) -> list[tuple[str, int]]:
    """Name and size of each cluster, largest first."""
    rows = session.execute(
        select(Cluster.cluster_id, Cluster.label, Cluster.size)
        .where(Cluster.clustering_id == clustering.id, Cluster.active)
        .order_by(Cluster.size.desc(), Cluster.cluster_id)
    )
    return [(label or f"cluster {number}", size) for number, label, size in rows]


def confusion(session: Session, clustering: Clustering, *, max_side: int) -> Confusion | None:
    """None if no image has a label. `max_side` limits both sides."""
    assigned = (Assignment.clustering_id == clustering.id, Assignment.cluster_id != EXCLUDED)
    labels = session.scalars(
        select(Image.label)
        .join(Assignment, Assignment.image_id == Image.id)
        .where(*assigned, Image.label.is_not(None))
        .group_by(Image.label)
        .order_by(func.count().desc(), Image.label)
        .limit(max_side)
    ).all()
    if not labels:
        return None
    clusters = session.scalars(
        select(Cluster)
        .where(Cluster.clustering_id == clustering.id, Cluster.active)
        .order_by(Cluster.size.desc(), Cluster.cluster_id)
        .limit(max_side)
    ).all()
    row = {cluster.cluster_id: number for number, cluster in enumerate(clusters)}
    column = {label: number for number, label in enumerate(labels)}
    counts = np.zeros((len(row), len(column)), dtype=np.int64)
    pairs = session.execute(
        select(Assignment.cluster_id, Image.label, func.count())
        .join(Image, Image.id == Assignment.image_id)
        .where(*assigned, Assignment.cluster_id.in_(row), Image.label.in_(labels))
        .group_by(Assignment.cluster_id, Image.label)
    )
    for cluster_id, label, count in pairs:
        counts[row[cluster_id], column[label]] = count
    names = [cluster.label for cluster in clusters]
    return Confusion(counts=counts, clusters=names, labels=[str(label) for label in labels])


def rebinned(counts: npt.NDArray[np.int64], bins: int) -> list[int]:
    """Joins the fine bins to `bins` wider ones; must be a divisor."""
    joined: list[int] = counts.reshape(bins, -1).sum(axis=1).tolist()
    return joined


def _probability_counts(session: Session, clustering_id: str) -> npt.NDArray[np.int64]:
    number = truncate(Assignment.probability * _FINE_BINS)
    rows = session.execute(
        select(number.label("bin"), func.count())
        .where(Assignment.clustering_id == clustering_id, Assignment.cluster_id != EXCLUDED)
        .group_by("bin")
    )
    counts = np.zeros(_FINE_BINS, dtype=np.int64)
    for bin_, count in rows:
        counts[min(max(bin_, 0), _FINE_BINS - 1)] += count  # 1.0 belongs to the last
    return counts


def _median(counts: npt.NDArray[np.int64]) -> float | None:
    """The median, to half a bin."""
    total = counts.sum()
    if not total:
        return None
    return (int(np.searchsorted(np.cumsum(counts), total / 2)) + 0.5) / _FINE_BINS


def _size_kl(sizes: npt.NDArray[np.int64]) -> float | None:
    total = sizes.sum()
    if not total:
        return None
    shares = sizes[sizes > 0] / total
    return max(0.0, float(np.log(len(sizes)) + (shares * np.log(shares)).sum()))
