"""The Celery app, and what the worker does beside jobs; `python -m worker` runs it."""

import threading
import time
from typing import Any

from celery.signals import setup_logging, worker_ready, worker_shutdown, worker_shutting_down

from app.core.jobs.queue import RUN_JOB
from app.core.platform import tracing
from app.core.platform.logs import configure_logging
from app.core.platform.processes import restrict_new_files
from app.core.platform.settings import get_settings
from app.core.runtime import Runtime
from worker.supervision.heartbeat import deregister_worker, start_heartbeat
from worker.supervision.job_supervisor import run_waiting_jobs
from worker.supervision.maintenance import (
    republish_due_jobs,
    start_cleaner,
    start_republisher,
    start_webhook_sender,
)
from worker.supervision.metrics import metrics

runtime = Runtime(get_settings())
restrict_new_files(runtime.settings)  # before the broker's folders are made
celery = runtime.celery
configure_logging(runtime.settings)  # now: Celery warns before it sends setup_logging
tracing.start_tracing(runtime.settings, "worker")
_STALE_SECONDS = 24 * 3600.0  # no upload or artifact takes longer to write
_stopping = threading.Event()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _keep_our_logging(**_: Any) -> None:
    """Celery configures logging itself unless this signal has a receiver."""


@worker_ready.connect  # type: ignore[untyped-decorator]
def _start(**_: Any) -> None:
    metrics.serve(runtime.settings)
    start_heartbeat(runtime, _stopping)
    runtime.storage.clean(_STALE_SECONDS, now=time.time())
    republish_due_jobs(runtime)
    start_republisher(runtime, _stopping)
    start_webhook_sender(runtime, _stopping)
    start_cleaner(runtime, _stopping)


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def _stop(**_: Any) -> None:
    _stopping.set()


@worker_shutdown.connect  # type: ignore[untyped-decorator]
def _leave(**_: Any) -> None:
    deregister_worker(runtime.db)


@celery.task(name=RUN_JOB)  # type: ignore[untyped-decorator]
def run_job_task(job_id: str) -> None:  # noqa: ARG001 - the database decides which job is next
    run_waiting_jobs(runtime, _stopping)
