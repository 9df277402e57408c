"""Answers about an earlier clustering that hold for a new one: they are not asked for again, and
the next training learns from them, too."""

from collections.abc import Iterable
from typing import NamedTuple

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session, aliased

from app.core.platform.activity import report_activity
from app.core.platform.streams import batched
from app.core.platform.tables import CARRIED, Review

_INSERT_ROWS = 10_000


class CarriedAnswer(NamedTuple):
    image_id: str
    cluster_id: int  # of the new clustering
    belongs_to: int | None  # as in a review


def carry_answers(
    session: Session, source_id: str, clustering_id: str, answers: Iterable[CarriedAnswer]
) -> None:
    """Adds the answers as reviews, with reviewer and time of those of the earlier clustering."""
    for chunk in batched(answers, _INSERT_ROWS):
        rows = [
            {"clustering_id": clustering_id, "stratum": CARRIED, **answer._asdict()}
            for answer in chunk
        ]
        session.execute(insert(Review), rows)
        report_activity()
    earlier = aliased(Review)
    same = (earlier.clustering_id == source_id, earlier.image_id == Review.image_id)
    reviewer = select(earlier.reviewed_by).where(*same).scalar_subquery()
    time = select(earlier.reviewed_at).where(*same).scalar_subquery()
    session.execute(
        update(Review)
        .where(Review.clustering_id == clustering_id)
        .values(reviewed_by=reviewer, reviewed_at=func.coalesce(time, Review.reviewed_at))
        .execution_options(synchronize_session=False)
    )
