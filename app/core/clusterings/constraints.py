"""What people said about the images of a clustering, for the training of the next one.

Said is what a person did to single images: a review, a move, an exclusion. The latest counts. A
merge or a split is about whole clusters: the images are in the clusters that it left.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from sqlalchemy import ColumnElement, Select, and_, case, func, or_, select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import created_clusters
from app.core.clusterings.revisions import RevisionView, iterate_pages
from app.core.platform.activity import reporting
from app.core.platform.db import Database
from app.core.platform.tables import (
    EXCLUDED,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Review,
)

NOTHING = -3  # nothing was said, or the image is new; EXCLUDED and clusters are what they are
EDITS = ("merge", "split", "move", "exclude")
_FETCH_ROWS = 10_000

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ClusteringConstraints:
    """By row of the dataset; clusters have the ids of the clustering."""

    current: Integers  # (N,): the cluster at the revision, EXCLUDED, or NOTHING for a new image
    said: Integers  # (N,): what a person said: a cluster, EXCLUDED, or NOTHING
    separated: Integers  # (N,): the part into which a split moved the image, or NOTHING
    refused: Integers  # (M, 2): rows, and clusters that are not theirs
    # (K, 2): images that stayed in the first cluster when it was split do not go to the second
    apart: Integers
    # Images by what was said of them, and operations: confirmed, moved, excluded, refused (not in
    # this cluster, without saying in which), merges, splits
    counts: dict[str, int]


def has_answers(session: Session, clustering_id: str) -> bool:
    """Whether a person has reviewed or edited the clustering, other than by names."""
    edited = select(ClusteringOperation.revision).where(
        ClusteringOperation.clustering_id == clustering_id,
        ClusteringOperation.kind.in_(EDITS),
        ClusteringOperation.undone_by.is_(None),
    )
    reviewed = select(Review.image_id).where(Review.clustering_id == clustering_id)
    return any(session.execute(query.limit(1)).first() for query in (edited, reviewed))


def kept_clusters(session: Session, clustering: Clustering) -> list[int]:
    """The active clusters that have images, or that a person named for one."""
    said = select(Review.belongs_to).where(Review.clustering_id == clustering.id)
    rows = session.scalars(
        select(Cluster.cluster_id)
        .where(
            Cluster.clustering_id == clustering.id,
            Cluster.active,
            or_(Cluster.size > 0, Cluster.cluster_id.in_(said)),
        )
        .order_by(Cluster.cluster_id)
    )
    return list(rows)


def collect_constraints(
    db: Database, view: RevisionView, image_ids: Sequence[str], until: float
) -> ClusteringConstraints:
    """The answers at a revision, without reviews after a time; `image_ids` are those of the
    dataset, in its order."""
    rows = _Rows(image_ids)
    current = _current(db, view, rows)
    with db.snapshot() as session:
        edits = _Edits.read(session, view)
        placed = rows.find(session.scalars(_changed(view, ("move", "exclude"))))
        split = rows.find(session.scalars(_changed(view, ("split",))))
        said = _Statements(view, edits, current, placed, split)
        for review in reporting(_reviews(session, view, until)):
            said.add(rows.find_one(review.image_id), review)
    separated = np.full_like(current, NOTHING)
    open_rows = split[(said.clusters[split] == NOTHING) & (current[split] >= 0)]
    separated[open_rows] = current[open_rows]
    refused = np.array(said.refused, dtype=np.int64).reshape(-1, 2)
    return ClusteringConstraints(
        current=current,
        said=said.clusters,
        separated=separated,
        refused=refused,
        apart=edits.split_pairs(view),
        counts={
            "confirmed": said.confirmed,
            "moved": int((said.clusters >= 0).sum()) - said.confirmed,
            "excluded": int((said.clusters == EXCLUDED).sum()),
            "refused": len(np.unique(refused[:, 0])),
            "merges": edits.count("merge"),
            "splits": edits.count("split"),
        },
    )


class _Rows:
    """Finds the rows of images by their ids."""

    def __init__(self, image_ids: Sequence[str]) -> None:
        ids = np.array(image_ids, dtype="S40")
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]

    def __len__(self) -> int:
        return len(self._sorted)

    def find(self, image_ids: Iterable[str]) -> Integers:
        """The rows of those images that are in the dataset."""
        wanted = np.fromiter((one.encode() for one in reporting(image_ids)), dtype="S40")
        place = np.minimum(np.searchsorted(self._sorted, wanted), len(self) - 1)
        return np.asarray(self._order[place[self._sorted[place] == wanted]], dtype=np.int64)

    def find_one(self, image_id: str) -> int | None:
        found = self.find([image_id])
        return int(found[0]) if len(found) else None


@dataclass(frozen=True, kw_only=True)
class _Edits:
    """The operations that are in effect at the revision, the oldest first."""

    operations: list[ClusteringOperation]
    into: dict[int, int]  # merged clusters
    parts: dict[int, list[tuple[float, list[int]]]]  # of a cluster: when it was split, into what
    joined: dict[int, float]  # when other images came into a cluster, or it ended, by a merge

    @classmethod
    def read(cls, session: Session, view: RevisionView) -> "_Edits":
        statement = select(ClusteringOperation).where(_in_effect(view, EDITS))
        found = list(session.scalars(statement.order_by(ClusteringOperation.revision)))
        edits = cls(operations=found, into={}, parts={}, joined={})
        for each in found:
            if each.kind == "merge":
                merged, into = each.arguments["cluster_ids"], each.arguments["into"]
                edits.into.update({one: into for one in merged if one != into})
                edits.joined.update(dict.fromkeys([*merged, into], each.created_at))
            elif each.kind == "split":
                made = (each.created_at, created_clusters(each))
                edits.parts.setdefault(each.arguments["cluster_id"], []).append(made)
        return edits

    def count(self, kind: str) -> int:
        return sum(each.kind == kind for each in self.operations)

    def merged_into(self, view: RevisionView, cluster_id: int) -> int:
        """The cluster that it is part of at the revision; NOTHING if it was undone."""
        while cluster_id in self.into and not _active(view, cluster_id):
            cluster_id = self.into[cluster_id]
        return cluster_id if _active(view, cluster_id) else NOTHING

    def split_pairs(self, view: RevisionView) -> Integers:
        pairs = [
            (cluster_id, part)
            for cluster_id, splits in self.parts.items()
            for _, parts in splits
            for part in parts
            if _active(view, cluster_id) and _active(view, part)
        ]
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)


@dataclass
class _Statements:
    """What was said last about each image."""

    view: RevisionView
    edits: _Edits
    current: Integers
    placed: Integers  # rows that were moved or excluded
    split: Integers  # rows that a split moved
    clusters: Integers = field(init=False)
    refused: list[tuple[int, int]] = field(default_factory=list)
    confirmed: int = 0

    def __post_init__(self) -> None:
        self.clusters = np.full_like(self.current, NOTHING)
        self.clusters[self.placed] = self.current[self.placed]
        self._explicit = {*self.placed.tolist(), *self.split.tolist()}

    def add(self, row: int | None, review: "_ReviewRow") -> None:
        if row is None:  # the image was deleted
            return
        if review.changed_at is not None and review.changed_at > review.reviewed_at:
            self._add_older(row, review)
        elif review.belongs_to is None:
            self.clusters[row] = NOTHING
            self._refuse(row, review)
        else:
            self._set(row, review, self._cluster_of(review.belongs_to))

    def _add_older(self, row: int, review: "_ReviewRow") -> None:
        """The image was moved after the review: by a person, by a merge or split, or by an undo,
        which says nothing."""
        if row in self._explicit:
            if review.belongs_to is not None:
                self.clusters[row] = self.current[row]
        elif review.belongs_to is None:
            self._refuse(row, review)
        elif self._cluster_of(review.belongs_to) == self.current[row]:
            self._set(row, review, int(self.current[row]))

    def _set(self, row: int, review: "_ReviewRow", cluster_id: int) -> None:
        self.clusters[row] = cluster_id
        self.confirmed += cluster_id >= 0 and review.belongs_to == review.cluster_id

    def _cluster_of(self, cluster_id: int) -> int:
        if cluster_id == EXCLUDED:
            return EXCLUDED
        return self.edits.merged_into(self.view, cluster_id)

    def _refuse(self, row: int, review: "_ReviewRow") -> None:
        """A later merge made another cluster of it; later parts are as wrong as the whole."""
        cluster_id = review.cluster_id
        if self.edits.joined.get(cluster_id, 0.0) > review.reviewed_at:
            return
        later = [
            part
            for at, parts in self.edits.parts.get(cluster_id, ())
            for part in parts
            if at > review.reviewed_at
        ]
        self.refused += [(row, one) for one in (cluster_id, *later) if _active(self.view, one)]


@dataclass(frozen=True)
class _ReviewRow:
    image_id: str
    cluster_id: int
    belongs_to: int | None
    reviewed_at: float
    changed_at: float | None  # when an operation last moved the image


def _reviews(session: Session, view: RevisionView, until: float) -> Iterable[_ReviewRow]:
    changed_at = (
        select(func.max(ClusteringOperation.created_at))
        .join(AssignmentChange, _same_operation())
        .where(
            AssignmentChange.clustering_id == view.clustering_id,
            AssignmentChange.image_id == Review.image_id,
            AssignmentChange.revision <= view.revision,
        )
        .correlate(Review)
        .scalar_subquery()
    )
    rows = session.execute(
        select(
            Review.image_id, Review.cluster_id, Review.belongs_to, Review.reviewed_at, changed_at
        )
        .where(Review.clustering_id == view.clustering_id, Review.reviewed_at <= until)
        .order_by(Review.image_id)
        .execution_options(yield_per=_FETCH_ROWS)
    )
    return (_ReviewRow(*row) for row in rows)


def _current(db: Database, view: RevisionView, rows: _Rows) -> Integers:
    current = np.full(len(rows), NOTHING, dtype=np.int64)
    for page in iterate_pages(db, view):
        found = rows.find(row.image_id for row in page)
        current[found] = [EXCLUDED if row.cluster_id is None else row.cluster_id for row in page]
    return current


def _changed(view: RevisionView, kinds: Sequence[str]) -> Select[str]:
    """The images that operations of these kinds moved. A withdrawn answer has moved an image there
    and back, which is as if it had not been moved."""
    withdrawal = ClusteringOperation.arguments["withdrawal"].as_boolean()
    return (
        select(AssignmentChange.image_id)
        .join(ClusteringOperation, _same_operation())
        .where(_in_effect(view, kinds))
        .group_by(AssignmentChange.image_id)
        .having(func.sum(case((withdrawal, -1), else_=1)) > 0)
        .execution_options(yield_per=_FETCH_ROWS)
    )


def _same_operation() -> ColumnElement[bool]:
    return and_(
        AssignmentChange.clustering_id == ClusteringOperation.clustering_id,
        AssignmentChange.revision == ClusteringOperation.revision,
    )


def _in_effect(view: RevisionView, kinds: Sequence[str]) -> ColumnElement[bool]:
    return and_(
        ClusteringOperation.clustering_id == view.clustering_id,
        ClusteringOperation.kind.in_(kinds),
        ClusteringOperation.revision <= view.revision,
        or_(
            ClusteringOperation.undone_by.is_(None),
            ClusteringOperation.undone_by > view.revision,
        ),
    )


def _active(view: RevisionView, cluster_id: int) -> bool:
    state = view.clusters.get(cluster_id)
    return state is not None and state.active
