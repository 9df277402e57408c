"""Notifications that wake workers: sent for a new job, and repeated while a job waits."""

import queue
import threading
from collections.abc import Callable, Sequence

import structlog
from sqlalchemy import ColumnElement, case, select, update
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.tables import OPEN, Job

_MAX_QUEUED = 1_000  # while the broker does not answer; workers republish what is dropped
_MAX_BACKOFF_SECONDS = 60.0  # between two notifications for one waiting job
_NOTIFICATIONS_PER_RUN = 32
log = structlog.get_logger()


class JobNotifier:
    """Sends notifications from a thread, so that a request never waits for the broker."""

    def __init__(self, send: Callable[[str, str], None]) -> None:
        self._send = send
        self._waiting: queue.Queue[tuple[str, str]] = queue.Queue(_MAX_QUEUED)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def notify(self, job_id: str, kind: str) -> None:
        """Returns at once. A lost notification is republished within seconds."""
        try:
            self._waiting.put_nowait((job_id, kind))
        except queue.Full:
            log.warning(
                "notification_failed", job_id=job_id, reason="the queue to the broker is full"
            )
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="job-notifier", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            job_id, kind = self._waiting.get()
            try:
                self._send(job_id, kind)
            except Exception as error:  # noqa: BLE001 - the next one may succeed
                log.warning("notification_failed", job_id=job_id, reason=str(error))


def due_for_notification(session: Session) -> Sequence[Job]:
    """Returns the jobs to notify workers of: queued ones with back-off, expired ones at once."""
    open_job = Job.status.in_(OPEN)
    due = (
        select(Job.id)
        .where(open_job, Job.notify_at <= db_now())
        .order_by(Job.notify_at, Job.id)  # a tenant with a thousand jobs delays no other
        .limit(_NOTIFICATIONS_PER_RUN)
        .with_for_update(skip_locked=True)  # a locked row does not block the rest
        .cte("due")  # not a subquery: PostgreSQL may evaluate one again for every row
    )
    backoff: ColumnElement[float] = case(
        (Job.notifications >= 4, _MAX_BACKOFF_SECONDS), else_=5.0 * (Job.notifications + 1)
    )
    return session.scalars(
        update(Job)
        # The time again: another worker may have been first.
        .where(Job.id.in_(select(due.c.id)), Job.notify_at <= db_now())
        .values(notifications=Job.notifications + 1, notify_at=db_now() + backoff)
        .returning(Job)
        .execution_options(synchronize_session=False)
    ).all()
