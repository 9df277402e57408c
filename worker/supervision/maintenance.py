"""Threads that repeat every `TEMI_MAINTENANCE_SECONDS`: notifications, webhooks, cleanup."""

import threading
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.jobs.kinds import KINDS
from app.core.jobs.notifications import due_for_notification
from app.core.jobs.queue import publish_notification
from app.core.jobs.shards import find_claimable_shard
from app.core.jobs.webhooks import send_due
from app.core.platform.errors import StorageUnavailable
from app.core.runtime import Runtime
from app.core.storage.deletion.cleanup import Cleanup
from worker.supervision.heartbeat import worker_state
from worker.supervision.metrics import metrics

log = structlog.get_logger()


def republish_due_jobs(runtime: Runtime) -> int:
    """Publishes notifications for jobs that wait or whose lease has expired."""
    with runtime.db.write() as session:
        due = due_for_notification(session)
    for job in due:
        publish_notification(runtime.celery, job.id, KINDS[job.kind].resource)
    return len(due)


def notify_of_shard(runtime: Runtime) -> bool:
    """Publishes one notification if this worker is idle and a shard waits.

    Any worker may receive it: there are as many notifications as idle workers.
    """
    settings = runtime.settings
    if not worker_state.idle:
        return False
    with runtime.db.read() as session:
        shard = find_claimable_shard(
            session,
            settings.worker_takes,
            max_crashes=settings.max_crashes,
            excluded_jobs=worker_state.excluded_jobs,
        )
    if shard is None:
        return False
    publish_notification(runtime.celery, shard.job_id, shard.needs)
    return True


class Cleaner:
    """One round of the storage's cleanup a call. Several may run side by side."""

    def __init__(self, runtime: Runtime) -> None:
        self._cleanup = Cleanup(runtime.db, runtime.storage, runtime.settings)

    def __call__(self) -> int:
        try:
            deleted = self._cleanup.run()
        except (OSError, StorageUnavailable) as error:  # the next round tries again
            log.warning("cleanup_failed", reason=str(error))
            return 0
        if deleted:
            log.info("files_deleted", files=deleted)
        return deleted


def start_republisher(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Every worker runs one: the database decides which of them publishes a notification."""

    def publish() -> int:
        return republish_due_jobs(runtime) + notify_of_shard(runtime)

    return _start("republisher", publish, runtime, stopping)


def start_webhook_sender(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Runs in a thread of its own, so that a slow receiver does not delay jobs."""
    return _start(
        "webhook_sender", lambda: send_due(runtime.db, runtime.settings), runtime, stopping
    )


def start_cleaner(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    return _start("cleaner", Cleaner(runtime), runtime, stopping)


def _start(
    name: str, action: Callable[[], int], runtime: Runtime, stopping: threading.Event
) -> threading.Thread:
    def loop() -> None:
        while not stopping.wait(runtime.settings.maintenance_seconds):
            try:
                action()
            except SQLAlchemyError as error:
                metrics.maintenance_runs.labels(name, "failed").inc()
                log.warning(f"{name}_failed", reason=str(error))
            else:
                metrics.maintenance_runs.labels(name, "done").inc()

    thread = threading.Thread(target=loop, name=name, daemon=True)
    thread.start()
    return thread
