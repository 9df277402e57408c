"""The state of a clustering at any of its revisions.

The tables hold the current state and the changes of each operation. The cluster of an image at a
revision is the one before its first later change, or the current one without a later change. An
image that was added later is not in it.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row, Subquery, select
from sqlalchemy.orm import Session

from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import (
    ABSENT,
    EXCLUDED,
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Image,
)

PAGE = 2_000
_START = -1  # before the first position


class ClusterState(NamedTuple):
    label: str | None  # None before it was created
    active: bool


class LabeledImage(NamedTuple):
    image_id: str
    name: str
    sha256: str
    width: int
    height: int
    format: str
    bytes: int
    true_label: str | None
    attributes: dict[str, Any]
    cluster_id: int | None  # None if it is excluded
    label: str | None
    probability: float

    @property
    def excluded(self) -> bool:
        return self.cluster_id is None


@dataclass(frozen=True, kw_only=True)
class RevisionView:
    """The clusters of a revision. A revision never changes, so the view may be cached."""

    clustering_id: str
    dataset_id: str
    revision: int
    clusters: dict[int, ClusterState]

    @property
    def labels(self) -> dict[int, str]:
        """Labels of the active clusters, by id."""
        return {
            number: state.label or ""
            for number, state in sorted(self.clusters.items())
            if state.active
        }


@dataclass(frozen=True, kw_only=True)
class LabelFilter:
    cluster_ids: frozenset[int] | None = None  # None: all
    min_probability: float | None = None
    include_excluded: bool = False  # independent of cluster_ids

    def keeps(self, row: LabeledImage) -> bool:
        if self.min_probability is not None and row.probability < self.min_probability:
            return False
        if row.cluster_id is None:
            return self.include_excluded
        return self.cluster_ids is None or row.cluster_id in self.cluster_ids


def check_revision(clustering: Clustering, revision: int | None) -> int:
    """The given revision, or the current one for None; raises InvalidRequest."""
    if revision is None:
        return clustering.revision
    if not 1 <= revision <= clustering.revision:
        raise InvalidRequest.field(
            "revision", f"must be between 1 and {clustering.revision}, the current one"
        )
    return revision


def open_revision(
    session: Session, clustering: Clustering, revision: int | None = None
) -> RevisionView:
    chosen = check_revision(clustering, revision)
    return RevisionView(
        clustering_id=clustering.id,
        dataset_id=clustering.dataset_id,
        revision=chosen,
        clusters=_clusters_at(session, clustering.id, chosen),
    )


def check_clusters(view: RevisionView, cluster_ids: Collection[int], field: str) -> None:
    """Raises InvalidRequest unless all clusters are active at this revision."""
    missing = sorted(set(cluster_ids) - set(view.labels))
    if missing:
        listed = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise InvalidRequest.field(field, f"revision {view.revision} has no cluster {listed}")


def iterate_pages(
    db: Database, view: RevisionView, size: int = PAGE
) -> Iterator[list[LabeledImage]]:
    """Pages of all images, each in its own transaction: a slow reader holds no connection."""
    after: int | None = _START
    while after is not None:
        with db.read() as session:
            rows, after = _read_page(session, view, after, size)
        if rows:
            yield rows


def _clusters_at(session: Session, clustering_id: str, revision: int) -> dict[int, ClusterState]:
    # Clusters first: an operation that commits in between then is among the later ones.
    now = session.execute(
        select(Cluster.cluster_id, Cluster.label, Cluster.active).where(
            Cluster.clustering_id == clustering_id
        )
    )
    states = {number: ClusterState(label, active) for number, label, active in now}
    later = session.scalars(
        select(ClusteringOperation.clusters_before)
        .where(
            ClusteringOperation.clustering_id == clustering_id,
            ClusteringOperation.revision > revision,
        )
        .order_by(ClusteringOperation.revision)
        .execution_options(yield_per=200)
    )
    restored: set[str] = set()
    for before in later:
        for number in before.keys() - restored:
            states[int(number)] = ClusterState(before[number]["label"], before[number]["active"])
            restored.add(number)
    return states


def _read_page(
    session: Session, view: RevisionView, after: int, size: int
) -> tuple[list[LabeledImage], int | None]:
    """The images of a page that are in the clustering, and the next position; None at the end."""
    images = _page_of_images(view, after, size)
    # Scalar subqueries: with a join, the database may scan all assignments for each page.
    assignment = (
        Assignment.clustering_id == view.clustering_id,
        Assignment.image_id == images.c.id,
    )
    before = (
        select(AssignmentChange.before)
        .where(
            AssignmentChange.clustering_id == view.clustering_id,
            AssignmentChange.image_id == images.c.id,
            AssignmentChange.revision > view.revision,
        )
        .order_by(AssignmentChange.revision)
        .limit(1)
    )
    found = session.execute(
        select(
            images,
            select(Assignment.cluster_id).where(*assignment).scalar_subquery().label("cluster_id"),
            select(Assignment.probability)
            .where(*assignment)
            .scalar_subquery()
            .label("probability"),
            before.scalar_subquery().label("before"),
        ).order_by(images.c.position)
    ).all()
    if not found:
        _check_exists(session, view)
        return [], None
    rows = [
        _labeled(view, row) for row in found if row.cluster_id is not None and row.before != ABSENT
    ]
    return rows, found[-1].position


def _page_of_images(view: RevisionView, after: int, size: int) -> Subquery:
    # The limit is on the images, not on the matches: no statement reads more than a page.
    return (
        select(
            Image.id,
            Image.name,
            Image.sha256,
            Image.width,
            Image.height,
            Image.format,
            Image.bytes,
            Image.label,
            Image.attributes,
            Image.position,
        )
        .where(Image.dataset_id == view.dataset_id, Image.position > after)
        .order_by(Image.position)
        .limit(size)
        .subquery()
    )


def _labeled(view: RevisionView, row: Row[Any]) -> LabeledImage:
    current = row.cluster_id if row.before is None else row.before
    cluster_id = None if current == EXCLUDED else current
    return LabeledImage(
        image_id=row.id,
        name=row.name,
        sha256=row.sha256,
        width=row.width,
        height=row.height,
        format=row.format,
        bytes=row.bytes,
        true_label=row.label,
        attributes=row.attributes,
        cluster_id=cluster_id,
        label=None if cluster_id is None else view.clusters[cluster_id].label,
        probability=row.probability,
    )


def _check_exists(session: Session, view: RevisionView) -> None:
    """A clustering that is deleted while it is read would end early without an error."""
    found = session.scalar(select(Clustering.id).where(Clustering.id == view.clustering_id))
    if found is None:
        raise NotFound(f"There is no clustering {view.clustering_id}.")
