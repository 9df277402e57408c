"""What people said about images of the old clustering, as reviews of the new one.

So a later adoption knows it, too: the operations that said it are those of the old clustering.
"""

from typing import Any

from sqlalchemy import (
    ColumnElement,
    Insert,
    Select,
    SQLColumnExpression,
    func,
    insert,
    literal,
    null,
    select,
)
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.members import Ids
from app.core.clusterings.names import follow_merges, read_merges
from app.core.clusterings.operations.editor import chunked
from app.core.clusterings.retraining.by_hand import select_moves
from app.core.clusterings.retraining.decisions import Outcome
from app.core.platform.clock import db_now
from app.core.platform.tables import (
    Assignment,
    AssignmentChange,
    Clustering,
    ClusteringOperation,
    Review,
)

_COLUMNS = ["clustering_id", "image_id", "cluster_id", "belongs_to", "reviewed_by", "reviewed_at"]


def carry_reviews(
    session: Session, old: Clustering, new: Clustering, said: Ids, outcome: Outcome
) -> None:
    """`said` are images that are where a person has placed them. Reviews of the new clustering
    stay: they are later. The sample that an image was drawn from is that of the old model, so it
    is not carried over."""
    _carry_places(session, old, new, said)
    _carry_refusals(session, old, new, outcome)


def _carry_places(session: Session, old: Clustering, new: Clustering, said: Ids) -> None:
    by, at = _origin(old)
    place = Assignment.cluster_id
    query = select(literal(new.id), Assignment.image_id, place, place, by, at).where(
        Assignment.clustering_id == new.id, _unreviewed(new, Assignment.image_id)
    )
    for chunk in chunked(said):
        ids = [image_id.decode() for image_id in chunk]
        session.execute(_insert(query.where(Assignment.image_id.in_(ids))))


def _carry_refusals(session: Session, old: Clustering, new: Clustering, outcome: Outcome) -> None:
    """Answers that an image does not belong to a cluster, without saying to which it does."""
    merges = read_merges(session, old.id)
    refused = (Review.clustering_id == old.id, Review.belongs_to.is_(None))
    for number in session.scalars(select(Review.cluster_id).where(*refused).distinct()).all():
        home = outcome.homes.get(follow_merges(number, merges))
        if home is None:
            continue
        asked = literal(new.id), Review.image_id, literal(home), null()
        query = select(*asked, Review.reviewed_by, Review.reviewed_at).where(
            *refused, Review.cluster_id == number, _unreviewed(new, Review.image_id)
        )
        session.execute(_insert(query))


def _origin(old: Clustering) -> tuple[ColumnElement[Any], ColumnElement[Any]]:
    """Who placed an image, and when: by a review, or by the last operation that moved it."""
    review = select(Review.reviewed_by, Review.reviewed_at).where(
        Review.clustering_id == old.id, Review.image_id == Assignment.image_id
    )
    move = (
        select_moves(old)
        .where(AssignmentChange.image_id == Assignment.image_id)
        .order_by(ClusteringOperation.revision.desc())
        .limit(1)
    )
    reviewed_by, reviewed_at = (
        review.with_only_columns(column).correlate(Assignment).scalar_subquery()
        for column in (Review.reviewed_by, Review.reviewed_at)
    )
    moved_by, moved_at = (
        move.with_only_columns(column).correlate(Assignment).scalar_subquery()
        for column in (ClusteringOperation.created_by, ClusteringOperation.created_at)
    )
    return (
        func.coalesce(moved_by, reviewed_by),
        func.coalesce(moved_at, reviewed_at, db_now()),
    )


def _unreviewed(new: Clustering, image_id: SQLColumnExpression[str]) -> ColumnElement[bool]:
    there = aliased(Review)
    found = select(there.image_id).where(there.clustering_id == new.id, there.image_id == image_id)
    return ~found.exists()


def _insert(query: Select[*tuple[Any, ...]]) -> Insert:
    return insert(Review).from_select(_COLUMNS, query)
