"""Looks every few seconds for what is due: jobs to ring the bell for, messages to send."""

import threading
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.jobs.kinds import KINDS
from app.core.jobs.lifecycle import due_for_notification
from app.core.jobs.queue import publish_notification
from app.core.jobs.shards import waiting_shard
from app.core.jobs.webhooks import send_due
from app.core.runtime import Runtime
from worker.supervision.cleaner import Cleaner
from worker.supervision.heartbeat import presence
from worker.supervision.metrics import metrics

log = structlog.get_logger()


def republish_due_jobs(runtime: Runtime) -> int:
    """Hints for jobs that wait or whose worker fell silent."""
    with runtime.db.write() as session:
        due = due_for_notification(session)
    for job in due:
        publish_notification(runtime.celery, job.id, KINDS[job.kind].resource)
    return len(due)


def notify_helpers(runtime: Runtime) -> bool:
    """A worker with nothing to do rings once for pieces of others' jobs, whoever then takes one:
    as many messages go out as there are idle workers."""
    settings = runtime.settings
    if not presence.idle:
        return False
    with runtime.db.read() as session:
        shard = waiting_shard(
            session,
            settings.worker_takes,
            max_crashes=settings.max_crashes,
            beside=presence.declined,
        )
    if shard is None:
        return False
    publish_notification(runtime.celery, shard.job_id, shard.needs)
    return True


def start_republisher(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Any number of sweepers may run: which of them sends a hint is decided by the database."""

    def look() -> int:
        return republish_due_jobs(runtime) + notify_helpers(runtime)

    return _start("republisher", look, runtime, stopping)


def start_webhook_sender(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Webhooks, in a thread of their own: a slow receiver must not keep jobs waiting."""
    return _start(
        "webhook_sender", lambda: send_due(runtime.db, runtime.settings), runtime, stopping
    )


def start_cleaner(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Files that nothing refers to any more."""
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
