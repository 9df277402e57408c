"""The process that does a job's work. It may be killed at any instruction."""

import os
import pkgutil
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection

import structlog
from sqlalchemy.exc import OperationalError

from app.core.jobs.lifecycle import Progress
from app.core.platform.activity import listen_to_activity
from app.core.platform.errors import LeaseLost, ServiceError, StorageUnavailable
from app.core.platform.logs import adopt_libraries, bind_process, configure_logging
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.platform.tracing import trace_id_of
from app.core.runtime import Runtime
from app.core.storage import raise_if_full
from temi.errors import InvalidConfig, TemiError, UnknownBackbone, WeightsUnavailable
from worker.context import (
    AliveReporter,
    JobContext,
    ShardClaimChanged,
    Sign,
    StageBegan,
    StageEvent,
)
from worker.jobs import ENTRIES
from worker.supervision import processes

Message = Progress | StageEvent | ShardClaimChanged | Sign | dict[str, object]
"""Progress, stages, shards while it goes well; at the end of a hopeless job, its error."""

_TEMI_CODES: dict[type[TemiError], str] = {
    InvalidConfig: "invalid_config",
    UnknownBackbone: "unknown_backbone",
    WeightsUnavailable: "weights_unavailable",
}
log = structlog.get_logger()


def main(
    settings: Settings, job_id: str, fence: int, connection: Connection, parent_pid: int
) -> None:
    die_with_parent(parent_pid)
    configure_logging(settings)
    bind_process(job_id=job_id, fence=fence, pid=os.getpid())
    try:
        _main(Runtime(settings), job_id, fence, connection)
    except Exception as error:
        processes.exit_if_outage(error)
        log.critical("uncaught_exception", exc_info=True)
        sys.exit(1)  # multiprocessing would print what is no line of the log


def _main(runtime: Runtime, job_id: str, fence: int, connection: Connection) -> None:
    with runtime.db.read() as session:
        job = session.get_one(Job, job_id)
    bind_process(kind=job.kind, request_id=job.request_id, trace_id=trace_id_of(job.traceparent))

    send = locked_send(connection)

    def tell(news: StageEvent) -> None:
        _log_stage(news)
        send(news)

    listen_to_activity(AliveReporter(send))
    error = _run(JobContext(runtime, job, fence, send, tell, send, send))
    listen_to_activity(None)
    if error is not None:
        send(error)
    connection.close()


def locked_send(connection: Connection) -> Callable[[object], None]:
    """Threads that read ahead report, too, and two messages must not mix."""
    lock = threading.Lock()

    def send(message: object) -> None:
        with lock:
            connection.send(message)

    return send


def _log_stage(news: StageEvent) -> None:
    bind_process(stage=news.stage)
    if isinstance(news, StageBegan):
        log.info("stage_started")
    else:
        log.info("stage_ended", seconds=round(news.seconds, 3), skipped=news.skipped)


def _run(context: JobContext) -> dict[str, object] | None:
    """The error that ends the job, if trying again would not help; crashes are let through."""
    try:
        _work(context)
    except LeaseLost as error:
        log.warning("lease_lost", detail=error.detail)
    except StorageUnavailable:
        raise
    except ServiceError as error:
        return error.as_dict()
    except TemiError as error:
        return {"code": _TEMI_CODES.get(type(error), "invalid_input"), "detail": str(error)}
    except OperationalError:
        raise  # another attempt may be luckier
    except MemoryError:
        return {"code": "out_of_memory", "detail": "The worker has too little memory for this job."}
    except Exception as error:  # a bug must end in a job that says so
        log.error("job_failed", exc_info=True)
        return {"code": "internal_error", "detail": f"{type(error).__name__}: {error}"[:500]}
    return None


def _work(context: JobContext) -> None:
    try:
        run = pkgutil.resolve_name(ENTRIES[context.job.kind])
        adopt_libraries()
        run(context)
    except OSError as error:
        raise_if_full(error)
        raise
