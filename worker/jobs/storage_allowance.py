"""An ingest stops where its key's quota ends: nobody knows before what is in an archive."""

from sqlalchemy import func, select

from app.core.access.quota import check_growth, quota_of
from app.core.platform.tables import Image
from worker.context import JobContext


class StorageAllowance:
    """What the ingest's key may still add."""

    def __init__(self, context: JobContext) -> None:
        self._context = context
        job = context.job
        mine = select(func.sum(Image.bytes)).where(
            Image.dataset_id == job.dataset_id, Image.position >= job.config["first_position"]
        )
        with context.runtime.db.read() as session:
            self._limit = quota_of(session, job.created_by)
            self._added = int(session.scalar(mine) or 0)  # by an attempt before this one

    def use(self, size: int) -> None:
        """For images whose rows are written: if it was too much, they go the way of the rest."""
        self._added += size
        if self._limit is not None:
            with self._context.runtime.db.read() as session:
                check_growth(session, self._context.job.tenant, self._added, self._limit)
