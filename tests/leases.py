"""Lease times of workers in tests, and forced expiry of leases.

A live worker keeps its lease on a busy machine, too; a test whose subject is the end
of a lease puts that end into the past instead of waiting for the clock.
"""

from sqlalchemy import update
from sqlalchemy.exc import OperationalError

from app.core.platform.db import Database
from app.core.platform.tables import Job, Shard
from tests.waiting import wait_until

LONG_LEASES = {"lease_seconds": 600.0, "self_kill_seconds": 500.0}


def expire_lease(db: Database, job_id: str) -> None:
    """Sets the job's lease to expired; a live worker renews it."""

    def expire() -> bool:
        try:
            with db.write() as session:
                session.execute(
                    update(Job)
                    .where(Job.id == job_id, Job.status.in_(["running", "cancelling"]))
                    .values(lease_until=0.0, notify_at=0.0)
                )
        except OperationalError:  # a worker that was stopped within a transaction holds the row
            return False
        return True

    wait_until(expire, f"the lease of {job_id} is ended")


def expire_shards_of(db: Database, worker: str) -> None:
    """Sets the leases of a dead worker to expired."""
    with db.write() as session:
        session.execute(
            update(Shard)
            .where(Shard.worker == worker, Shard.done_at.is_(None), Shard.lease_until > 0)
            .values(lease_until=1.0)
        )
