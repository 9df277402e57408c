"""The images that a person has placed: moved, excluded, or confirmed in a review."""

from collections.abc import Iterator

import numpy as np
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.core.clusterings.members import Ids
from app.core.clusterings.names import follow_merges, read_merges
from app.core.platform.tables import (
    Assignment,
    AssignmentChange,
    Clustering,
    ClusteringOperation,
    Review,
)

_BY_HAND = ("move", "exclude")
_ID = "S40"
_FETCH_ROWS = 10_000


def placed_by_hand(session: Session, clustering: Clustering) -> Ids:
    """Their ids, sorted. The cluster that the person has chosen is the one that they are in."""
    moved = session.scalars(
        select_moves(clustering).execution_options(yield_per=_FETCH_ROWS)
    ).partitions()
    pages = [np.array(page, _ID) for page in moved]
    confirmed = np.array(list(_confirmed(session, clustering)), _ID)
    return np.unique(np.concatenate([*pages, confirmed]))


def select_moves(clustering: Clustering) -> Select[str]:
    """The images of all moves and exclusions that are not undone."""
    return (
        select(AssignmentChange.image_id)
        .join(
            ClusteringOperation,
            (ClusteringOperation.clustering_id == AssignmentChange.clustering_id)
            & (ClusteringOperation.revision == AssignmentChange.revision),
        )
        .where(
            ClusteringOperation.clustering_id == clustering.id,
            ClusteringOperation.kind.in_(_BY_HAND),
            ClusteringOperation.undone_by.is_(None),
        )
    )


def _confirmed(session: Session, clustering: Clustering) -> Iterator[str]:
    """The images that are where a review says; a later edit may have moved others."""
    merges = read_merges(session, clustering.id)
    rows = session.execute(
        select(Review.image_id, Review.belongs_to, Assignment.cluster_id)
        .join(
            Assignment,
            (Assignment.clustering_id == Review.clustering_id)
            & (Assignment.image_id == Review.image_id),
        )
        .where(Review.clustering_id == clustering.id, Review.belongs_to.is_not(None))
        .execution_options(yield_per=_FETCH_ROWS)
    )
    for image_id, belongs_to, cluster_id in rows:
        if belongs_to is not None and cluster_id == follow_merges(belongs_to, merges):
            yield image_id
