"""Celery as a notification channel: a message wakes a worker, the database says which job is next.

There is a queue per resource, so that a notification reaches a worker that can run the job.
"""

from typing import TYPE_CHECKING

import structlog
from kombu.connection import Connection
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError

from app.core.platform.settings import Settings

if TYPE_CHECKING:
    from celery import Celery

RUN_JOB = "temi.run_job"
log = structlog.get_logger()


def make_celery(settings: Settings) -> "Celery":
    from celery import Celery  # not to check the broker: an API process that starts does only that

    queues = [_queue(queue_name(resource)) for resource in settings.worker_takes]
    celery = Celery("temi", broker=settings.broker_url)
    celery.conf.update(
        task_ignore_result=True,
        task_default_queue=queues[0].name,
        task_queues=queues,
        worker_prefetch_multiplier=1,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
        broker_connection_retry_on_startup=True,
        broker_connection_timeout=5,
        broker_transport_options=_transport_options(settings),
    )
    return celery


def queue_name(resource: str) -> str:
    return f"temi.{resource}"


def publish_notification(celery: "Celery", job_id: str, resource: str) -> None:
    """Logs a failure: a lost notification delays the job by seconds, until it is republished."""
    try:
        celery.send_task(RUN_JOB, args=[job_id], queue=_queue(queue_name(resource)), retry=False)
    except (OperationalError, OSError) as error:
        log.warning("notification_failed", job_id=job_id, reason=str(error))


def check_broker(settings: Settings) -> None:
    """Raises if no message could be sent now."""
    options = _transport_options(settings)
    with Connection(  # type: ignore[no-untyped-call]
        settings.broker_url, connect_timeout=3, transport_options=options
    ) as connection:
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
            "max_retries": 1,  # a request must not wait for an unreachable broker
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
