"""Celery as a bell: a message says `look at this job`, the database says what is true.

There is a queue for each resource, so that a message about a job reaches a worker that takes it.
"""

from collections.abc import Iterable

import structlog
from celery import Celery
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError

from app.core.platform.settings import Settings

RUN_JOB = "temi.run_job"
_BEFORE = "temi"  # the only queue of version 0.1, whose processes may still send to it
log = structlog.get_logger()


def make_celery(settings: Settings) -> Celery:
    celery = Celery("temi", broker=settings.broker_url)
    celery.conf.update(
        task_ignore_result=True,
        task_default_queue=_BEFORE,
        task_queues=[_queue(name) for name in queue_names(settings.worker_takes)],
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=5,
        broker_transport_options=_transport_options(settings),
    )
    return celery


def queue_names(takes: Iterable[str]) -> list[str]:
    """What a worker that takes these resources listens to."""
    return [_BEFORE, *(f"{_BEFORE}.{resource}" for resource in takes)]


def publish_notification(celery: Celery, job_id: str, needs: str) -> None:
    """Best effort: a lost message costs seconds, for the sweeper sends another."""
    (queue,) = queue_names([needs])[1:]
    try:
        celery.send_task(RUN_JOB, args=[job_id], queue=_queue(queue), retry=False)
    except (OperationalError, OSError) as error:
        log.warning("notification_not_sent", job_id=job_id, reason=str(error))


def check_broker(celery: Celery) -> None:
    """Raises if no message could be sent now."""
    with celery.connection_for_write(connect_timeout=3) as connection:
        connection.ensure_connection(max_retries=1, interval_start=0, timeout=3)


def _queue(name: str) -> Queue:
    exchange = Exchange(name)  # type: ignore[no-untyped-call]
    return Queue(name, exchange, routing_key=name)  # type: ignore[no-untyped-call]


def _transport_options(settings: Settings) -> dict[str, object]:
    if not settings.broker_url.startswith("filesystem:"):
        return {
            "socket_timeout": 10,
            "socket_connect_timeout": 5,
            "visibility_timeout": 3600,
            "max_retries": 1,  # a request must not wait for a broker that is gone
            "interval_start": 0,
        }
    folders = {name: settings.broker_dir / name for name in ("messages", "control")}
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True)
    return {
        "data_folder_in": str(folders["messages"]),
        "data_folder_out": str(folders["messages"]),
        "control_folder": str(folders["control"]),
        "store_processed": False,
        "polling_interval": 0.2,
    }
