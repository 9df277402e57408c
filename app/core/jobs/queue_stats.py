"""Statistics of the queue, read from indexes only: 10,000 old jobs cost milliseconds."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.tables import Job, WebhookDelivery


@dataclass(frozen=True)
class JobGroup:
    """Jobs of a kind and status, and the age of the oldest."""

    kind: str
    status: str
    count: int
    oldest_seconds: float


@dataclass(frozen=True)
class RunningJob:
    kind: str
    stage: str | None
    rate: float | None
    lease_left: float  # seconds; negative if the lease has expired


@dataclass(frozen=True)
class QueueStats:
    groups: Sequence[JobGroup]
    running: Sequence[RunningJob]
    webhooks_waiting: int
    notified_seconds: float | None
    """How long the latest notification is overdue; negative if workers have just published it,
    None if no job is queued."""

    @property
    def queued(self) -> int:
        return sum(group.count for group in self.groups if group.status == "queued")

    @property
    def oldest_queued_seconds(self) -> float:
        waiting = [group.oldest_seconds for group in self.groups if group.status == "queued"]
        return max(waiting, default=0.0)


def read_queue_stats(session: Session) -> QueueStats:
    now = session.scalar(select(db_now())) or 0.0
    groups = session.execute(
        select(Job.kind, Job.status, func.count(), func.min(Job.queued_at)).group_by(
            Job.status, Job.kind
        )
    )
    running = session.execute(
        select(Job.kind, Job.stage, Job.rate, Job.lease_until).where(
            Job.status.in_(["running", "cancelling"])
        )
    )
    waiting = select(func.count()).select_from(WebhookDelivery)
    due = session.scalar(select(func.max(Job.notify_at)).where(Job.status == "queued"))
    return QueueStats(
        groups=[JobGroup(*row[:3], oldest_seconds=max(0.0, now - row[3])) for row in groups],
        running=[RunningJob(*row[:3], lease_left=row[3] - now) for row in running],
        webhooks_waiting=session.scalar(waiting.where(WebhookDelivery.status == "waiting")) or 0,
        notified_seconds=None if due is None else now - due,
    )
