"""Answers of people to the question whether images belong to their cluster."""

from collections.abc import Callable

from sqlalchemy import select

from app.core.platform.tables import Assignment, Review
from app.core.runtime import Runtime


def add_reviews(
    runtime: Runtime,
    clustering_id: str,
    is_right: Callable[[int], bool],
    *,
    sampled: Callable[[int], bool] = lambda _: False,
) -> int:
    """Reviews of all images, the most probable first; both functions get their rank. Returns their
    number."""
    with runtime.db.write() as session:
        rows = session.scalars(
            select(Assignment)
            .where(Assignment.clustering_id == clustering_id)
            .order_by(Assignment.probability.desc())
        ).all()
        for rank, row in enumerate(rows):
            session.add(
                Review(
                    clustering_id=clustering_id,
                    image_id=row.image_id,
                    cluster_id=row.cluster_id,
                    belongs_to=row.cluster_id if is_right(rank) else None,
                    stratum=0 if sampled(rank) else None,
                )
            )
        return len(rows)
