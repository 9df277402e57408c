"""Which answers of people still count, after merges, splits and moves of images.

Answers are kept as they were given. A merged cluster counts as the one that it was merged into.
An answer tells about an image as long as the image is in the cluster that was asked about, or in
the one that was named; an image that was moved elsewhere since is asked about again.
"""

from collections.abc import Iterator
from typing import NamedTuple

from sqlalchemy import ColumnElement, Select, or_, select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import merges_of, splits_of
from app.core.platform.tables import (
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Image,
    Review,
)

_FETCH_ROWS = 2_000


class Reviewed(NamedTuple):
    image_id: str
    cluster_id: int  # that the person was asked about
    belongs_to: int | None  # None: not this cluster; EXCLUDED: none


class Lineage(NamedTuple):
    """What became of the clusters of earlier revisions."""

    merged: dict[int, int]  # into which active cluster
    split_at: dict[int, float]  # when images were last split off; older samples are of a mixture

    def now(self, cluster_id: int) -> int:
        return self.merged.get(cluster_id, cluster_id)

    def sources(self, cluster_id: int) -> list[int]:
        """The cluster, and those that were merged into it."""
        return [cluster_id, *(old for old, new in self.merged.items() if new == cluster_id)]


def reviewed(session: Session, clustering_id: str) -> Iterator[Reviewed]:
    """Every reviewed image with what people said of it, as a stream in the order of the upload;
    merged clusters are replaced by those that they were merged into."""
    lineage = read_lineage(session, clustering_id)
    rows = session.execute(
        select(Review.image_id, Review.cluster_id, Review.belongs_to)
        .where(Review.clustering_id == clustering_id)
        .order_by(Review.image_id)
        .execution_options(yield_per=_FETCH_ROWS)
    )
    for image_id, asked, said in rows:
        yield Reviewed(image_id, lineage.now(asked), None if said is None else lineage.now(said))


def read_lineage(session: Session, clustering_id: str) -> Lineage:
    edits = session.scalars(
        select(ClusteringOperation)
        .where(
            ClusteringOperation.clustering_id == clustering_id,
            ClusteringOperation.kind.in_(("merge", "split", "adopt")),
            ClusteringOperation.undone_by.is_(None),
        )
        .order_by(ClusteringOperation.revision)
    )
    merged: dict[int, int] = {}
    split_at: dict[int, float] = {}
    for edit in edits:
        for merge in merges_of(edit):
            into = merge["into"]
            gone = set(merge["cluster_ids"]) - {into}
            merged = {old: into if new in gone else new for old, new in merged.items()}
            merged |= dict.fromkeys(gone, into)
        changed = {split["cluster_id"] for split in splits_of(edit)}
        if edit.kind == "adopt":  # images came and left
            changed |= {home for _, home in edit.arguments["groups"]}
        mixed = changed | {old for old, new in merged.items() if new in changed}
        split_at |= dict.fromkeys(sorted(mixed), edit.created_at)
    return Lineage(merged, split_at)


def is_reviewed(clustering_id: str, sources: list[int]) -> ColumnElement[bool]:
    """Whether an answer tells about the image of an assignment to the cluster with these ids."""
    return (
        select(Review.image_id)
        .where(
            Review.clustering_id == clustering_id,
            Review.image_id == Assignment.image_id,
            or_(Review.cluster_id.in_(sources), Review.belongs_to.in_(sources)),
        )
        .exists()
    )


def placed_by_hand(clustering_id: str) -> Select[str]:
    """The images that people moved, in a review or without one."""
    return (
        select(AssignmentChange.image_id)
        .join(
            ClusteringOperation,
            (ClusteringOperation.clustering_id == AssignmentChange.clustering_id)
            & (ClusteringOperation.revision == AssignmentChange.revision),
        )
        .where(
            AssignmentChange.clustering_id == clustering_id,
            ClusteringOperation.kind.in_(("move", "redo")),
            ClusteringOperation.undone_by.is_(None),
        )
        .distinct()
    )


def select_answers(clustering: Clustering) -> Select[Review, str]:
    """With the names of the images."""
    name = select(Image.name).where(Image.id == Review.image_id).scalar_subquery()
    return select(Review, name).where(Review.clustering_id == clustering.id)


def active_clusters(session: Session, clustering_id: str) -> list[Cluster]:
    query = select(Cluster).where(Cluster.clustering_id == clustering_id, Cluster.active)
    return list(session.scalars(query.order_by(Cluster.cluster_id)))
