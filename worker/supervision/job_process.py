"""The process that runs a job. It may be killed at any instruction."""

import os
import pkgutil
import sys
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
    ActivityReporter,
    JobContext,
    ShardClaimChanged,
    StageBegan,
    StageEvent,
)
from worker.jobs import ENTRIES
from worker.supervision import processes
from worker.supervision.stalls import LivenessSignal

Message = Progress | StageEvent | ShardClaimChanged | LivenessSignal | dict[str, object]
"""Progress, stages and shards while the job runs; at the end of a failed job, its error."""

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
        sys.exit(1)  # multiprocessing would print a traceback that is no line of the log


def _main(runtime: Runtime, job_id: str, fence: int, connection: Connection) -> None:
    with runtime.db.read() as session:
        job = session.get_one(Job, job_id)
    bind_process(kind=job.kind, request_id=job.request_id, trace_id=trace_id_of(job.traceparent))

    send = processes.locked_send(connection)

    def on_stage_event(event: StageEvent) -> None:
        _log_stage(event)
        send(event)

    listen_to_activity(ActivityReporter(send))
    error = _run(JobContext(runtime, job, fence, send, on_stage_event, send, send))
    listen_to_activity(None)
    if error is not None:
        send(error)
    connection.close()


def _log_stage(event: StageEvent) -> None:
    bind_process(stage=event.stage)
    if isinstance(event, StageBegan):
        log.info("stage_started")
    else:
        log.info("stage_ended", seconds=round(event.seconds, 3), skipped=event.skipped)


def _run(context: JobContext) -> dict[str, object] | None:
    """Returns the error that ends the job; raises what another attempt may not run into."""
    try:
        _run_entry(context)
    except LeaseLost as error:
        log.warning("lease_lost", detail=error.detail)
    except StorageUnavailable:
        raise
    except ServiceError as error:
        return error.as_dict()
    except TemiError as error:
        return {"code": _TEMI_CODES.get(type(error), "invalid_input"), "detail": str(error)}
    except OperationalError:
        raise
    except MemoryError:
        return {"code": "out_of_memory", "detail": "The worker has too little memory for this job."}
    except Exception as error:  # a bug must end in a failed job that shows it
        log.error("job_failed", exc_info=True)
        return {"code": "internal_error", "detail": f"{type(error).__name__}: {error}"[:500]}
    return None


def _run_entry(context: JobContext) -> None:
    try:
        run = pkgutil.resolve_name(ENTRIES[context.job.kind])
        adopt_libraries()
        processes.limit_threads(context.runtime.settings)
        run(context)
    except OSError as error:
        raise_if_full(error)
        raise
