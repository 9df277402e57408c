"""Looks every few seconds for jobs that wait or whose worker fell silent, and rings the bell."""

import threading

import structlog
from sqlalchemy.exc import SQLAlchemyError

from app.core.jobs import due_for_hint
from app.core.queue import publish_hint
from app.core.runtime import Runtime

log = structlog.get_logger()


def sweep(runtime: Runtime) -> int:
    with runtime.db.write() as session:
        due = due_for_hint(session)
    for job_id in due:
        publish_hint(runtime.celery, job_id)
    return len(due)


def start_sweeper(runtime: Runtime, stopping: threading.Event) -> threading.Thread:
    """Any number of sweepers may run: which of them sends a hint is decided by the database."""

    def loop() -> None:
        while not stopping.wait(runtime.settings.sweep_seconds):
            try:
                sweep(runtime)
            except SQLAlchemyError as error:
                log.warning("sweep_failed", reason=str(error))

    thread = threading.Thread(target=loop, name="sweeper", daemon=True)
    thread.start()
    return thread
