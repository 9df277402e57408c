"""A clustering as it was at any of its revisions, image by image.

The tables hold the present and what each operation changed. An image was where its earliest later
change found it, else where it is now; a cluster likewise.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Row, Subquery, select
from sqlalchemy.orm import Session

from app.core.platform.db import Database
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import (
    EXCLUDED,
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Image,
)

PAGE = 2_000
_NOWHERE = -1  # before the first position


class ClusterState(NamedTuple):
    label: str | None  # None before it was made
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
    cluster_id: int | None  # None if it was taken out
    label: str | None
    probability: float

    @property
    def excluded(self) -> bool:
        return self.cluster_id is None


@dataclass(frozen=True, kw_only=True)
class RevisionView:
    """All that does not depend on the image. A revision never changes, so it may be kept."""

    clustering_id: str
    dataset_id: str
    revision: int
    clusters: dict[int, ClusterState]

    @property
    def labels(self) -> dict[int, str]:
        """Of the clusters that were there, by id."""
        return {
            number: state.label or ""
            for number, state in sorted(self.clusters.items())
            if state.active
        }


@dataclass(frozen=True, kw_only=True)
class LabelFilter:
    cluster_ids: frozenset[int] | None = None  # None: all
    min_probability: float | None = None
    include_excluded: bool = False  # whatever clusters are asked for: they are in none

    def keeps(self, row: LabeledImage) -> bool:
        if self.min_probability is not None and row.probability < self.min_probability:
            return False
        if row.cluster_id is None:
            return self.include_excluded
        return self.cluster_ids is None or row.cluster_id in self.cluster_ids


def check_revision(clustering: Clustering, revision: int | None) -> int:
    """The current one if none is named."""
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
    """All of them are there at this revision."""
    missing = sorted(set(cluster_ids) - set(view.labels))
    if missing:
        shown = ", ".join(map(str, missing[:5])) + (", ..." if len(missing) > 5 else "")
        raise InvalidRequest.field(field, f"revision {view.revision} has no active cluster {shown}")


def iterate_labeled(
    session: Session,
    clustering: Clustering,
    revision: int | None = None,
    cluster_ids: Collection[int] | None = None,
    min_probability: float | None = None,
    include_excluded: bool = False,
) -> Iterator[list[LabeledImage]]:
    """All images that fit, in the order of the upload, a page at a time."""
    view = open_revision(session, clustering, revision)
    wanted = LabelFilter(
        cluster_ids=None if cluster_ids is None else frozenset(cluster_ids),
        min_probability=min_probability,
        include_excluded=include_excluded,
    )
    after: int | None = _NOWHERE
    while after is not None:
        rows, after = _read_page(session, view, after, PAGE)
        if kept := [row for row in rows if wanted.keeps(row)]:
            yield kept


def iterate_pages(
    db: Database, view: RevisionView, size: int = PAGE
) -> Iterator[list[LabeledImage]]:
    """All images, a transaction for each page: a slow reader holds no connection in between."""
    after: int | None = _NOWHERE
    while after is not None:
        with db.read() as session:
            rows, after = _read_page(session, view, after, size)
        if rows:
            yield rows


def _clusters_at(session: Session, clustering_id: str, revision: int) -> dict[int, ClusterState]:
    # Clusters first: an operation that commits in between is then among the later ones.
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
    settled: set[str] = set()
    for before in later:
        for number in before.keys() - settled:
            states[int(number)] = ClusterState(before[number]["label"], before[number]["active"])
            settled.add(number)
    return states


def _read_page(
    session: Session, view: RevisionView, after: int, size: int
) -> tuple[list[LabeledImage], int | None]:
    """A page's images that are in the clustering, and where to go on; None at the end."""
    images = _page_of_images(view, after, size)
    # Looked up one by one: a join would let the database scan all assignments for each page.
    place = (
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
            select(Assignment.cluster_id).where(*place).scalar_subquery().label("cluster_id"),
            select(Assignment.probability).where(*place).scalar_subquery().label("probability"),
            before.scalar_subquery().label("before"),
        ).order_by(images.c.position)
    ).all()
    if not found:
        _check_still_there(session, view)
        return [], None
    rows = [_labeled(view, row) for row in found if row.cluster_id is not None]
    return rows, found[-1].position


def _page_of_images(view: RevisionView, after: int, size: int) -> Subquery:
    # The limit is on the images, not on what is found: no statement ever looks at more than a page.
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
    place = row.cluster_id if row.before is None else row.before
    cluster_id = None if place == EXCLUDED else place
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


def _check_still_there(session: Session, view: RevisionView) -> None:
    """Deleted while it was read, it would end early and look whole."""
    found = session.scalar(select(Clustering.id).where(Clustering.id == view.clustering_id))
    if found is None:
        raise NotFound(f"There is no clustering {view.clustering_id}.")
