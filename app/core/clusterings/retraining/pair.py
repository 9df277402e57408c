"""An old and a new clustering of a dataset: their clusters, common images, and transitions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.agreement import Integers, Overlap
from app.core.clusterings.names import follow_merges, read_merges
from app.core.clusterings.operations import created_clusters
from app.core.clusterings.queries import select_clusters
from app.core.clusterings.retraining.transitions import Status, Transitions, find_transitions
from app.core.clusterings.rows import cluster_label, get_clustering
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import ABSENT, Assignment, Cluster, Clustering, ClusteringOperation

_MOST = 0.5
Decision = Literal["approve", "reject"]


@dataclass(frozen=True, kw_only=True)
class Pair:
    old: Clustering
    new: Clustering
    groups: dict[int, Cluster]  # of the old clustering, active ones, by number
    clusters: dict[int, Cluster]  # of the new one
    images: Overlap  # of the new clustering; `left` is ABSENT for images that the old one lacks
    joined: frozenset[int]  # groups that a person has merged
    made: frozenset[int]  # groups that a person has made, by a split or from chosen images

    @cached_property
    def transitions(self) -> Transitions:
        """From the images that neither clustering excludes."""
        shown = (self.images.left >= 0) & (self.images.right >= 0)
        columns = (self.images.left, self.images.right, self.images.count)
        return find_transitions(Overlap(*(column[shown] for column in columns)))

    def status(self, group: int) -> Status:
        return self.transitions.status(group, joined=group in self.joined)

    def suggested(self, group: int) -> Decision:
        """Reject what takes most images from a group that a person has named or made."""
        is_edited = self.groups[group].named or group in self.made
        lost = self.transitions.stays.get(group, 0.0) < _MOST
        return "reject" if is_edited and lost else "approve"

    def parts(self, group: int) -> list[int]:
        return self.transitions.parts.get(group, [])

    def has_label(self, group: int) -> bool:
        """Whether its label says more than the number that it had."""
        return self.groups[group].label != cluster_label(group)


def read_pair(session: Session, tenant: str, clustering_id: str, since: str) -> Pair:
    old, new = get_both(session, tenant, clustering_id, since)
    merges = read_merges(session, old.id)
    return Pair(
        old=old,
        new=new,
        groups={row.cluster_id: row for row in session.scalars(select_clusters(old))},
        clusters={row.cluster_id: row for row in session.scalars(select_clusters(new))},
        images=_count_images(session, old, new),
        joined=frozenset(follow_merges(number, merges) for number in merges.values()),
        made=_made(session, old),
    )


def get_both(
    session: Session, tenant: str, clustering_id: str, since: str
) -> tuple[Clustering, Clustering]:
    """The old and the new clustering."""
    new = get_clustering(session, tenant, clustering_id)
    old = get_clustering(session, tenant, since)
    if old.id == new.id:
        raise InvalidRequest.field("since", f"must be another clustering than {since} itself")
    if old.dataset_id != new.dataset_id:
        raise InvalidRequest.field("since", f"{since} is a clustering of another dataset")
    return old, new


def count_missing(session: Session, pair: Pair) -> int:
    """The images of the old clustering that the new one lacks."""
    query = select(func.count()).where(Assignment.clustering_id == pair.old.id)
    common = int(pair.images.count[pair.images.left != ABSENT].sum())
    return (session.scalar(query) or 0) - common


def _count_images(session: Session, old: Clustering, new: Clustering) -> Overlap:
    """Counted by the database: returns one row per pair of clusters, not per image."""
    of_old, of_new = aliased(Assignment), aliased(Assignment)
    before = func.coalesce(of_old.cluster_id, ABSENT)
    query = (
        select(before, of_new.cluster_id, func.count())
        .select_from(of_new)
        .outerjoin(of_old, (of_old.image_id == of_new.image_id) & (of_old.clustering_id == old.id))
        .where(of_new.clustering_id == new.id)
        .group_by(before, of_new.cluster_id)
        .order_by(before, of_new.cluster_id)
    )
    columns: Integers = np.array(session.execute(query).all(), dtype=np.int64).reshape(-1, 3).T
    return Overlap(*columns)


def _made(session: Session, clustering: Clustering) -> frozenset[int]:
    edits = session.scalars(
        select(ClusteringOperation).where(
            ClusteringOperation.clustering_id == clustering.id,
            ClusteringOperation.kind.not_in(("undo", "redo")),
            ClusteringOperation.undone_by.is_(None),
        )
    )
    return frozenset(number for edit in edits for number in created_clusters(edit))
