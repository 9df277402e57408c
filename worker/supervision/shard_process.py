"""The process that helps with another worker's job, piece after piece. It may be killed any time.

It writes nothing but the files of the pieces and that they are done: the job is not its own.
"""

import os
import pkgutil
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import structlog

from app.core.jobs.lifecycle import Progress, one_waits
from app.core.jobs.shards import ShardClaim, claim_shard
from app.core.platform.activity import listen_to_activity, report_activity
from app.core.platform.logs import adopt_libraries, bind_process, configure_logging
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings
from app.core.platform.tables import Job, Shard
from app.core.platform.tracing import trace_id_of
from app.core.runtime import Runtime
from worker.context import AliveReporter, JobContext, ShardClaimChanged, Sign
from worker.stages.artifacts import load_json
from worker.stages.sharded_stage import ShardFunction, do_shard
from worker.supervision import processes
from worker.supervision.heartbeat import takes
from worker.supervision.job_process import locked_send

Message = ShardClaimChanged | Sign | dict[str, object]
"""Which piece it works on, and that it gets on; at the end of help that was of no use, why."""

_NO_FENCE = -1  # whatever it tried to write of the job would be void
_TASKS = {
    "embed": "worker.stages.embedding_shards:embedder",
    "mine": "worker.stages.neighbor_shards:miner",
}
log = structlog.get_logger()


def main(
    settings: Settings, shard_id: str, worker: str, connection: Connection, parent_pid: int
) -> None:
    die_with_parent(parent_pid)
    configure_logging(settings)
    bind_process(pid=os.getpid())
    send = locked_send(connection)
    listen_to_activity(AliveReporter(send))
    try:
        help_with(Runtime(settings), shard_id, worker, send)
    except Exception as error:
        processes.exit_if_outage(error)
        # The job's own worker will find it, too, and say it.
        log.warning("help_given_up", exc_info=True)
        send({"detail": f"{type(error).__name__}: {error}"})
        sys.exit(0)


def help_with(
    runtime: Runtime, shard_id: str, worker: str, send: Callable[[Message], None]
) -> None:
    """As long as there are pieces of this job and no job of its own waits."""
    with runtime.db.read() as session:
        first = session.get_one(Shard, shard_id)
        job = session.get_one(Job, first.job_id)
    bind_process(job_id=job.id, kind=job.kind, stage=first.stage)
    bind_process(request_id=job.request_id, trace_id=trace_id_of(job.traceparent))
    context = JobContext(runtime, job, _NO_FENCE, _ignore, on_shard_claim=send, on_liveness=send)
    plan, make = first.plan, maker(context, first)
    shard: Shard | None = first
    while shard is not None:
        if shard.plan != plan:
            plan, make = shard.plan, maker(context, shard)
        do_shard(runtime, shard, make, lambda _rows: report_activity())
        shard = _next(runtime, shard, worker)
        context.report_claim(ShardClaim.of(shard) if shard is not None else None)


def maker(context: JobContext, shard: Shard) -> ShardFunction:
    plan: dict[str, Any] = load_json(context.runtime.storage, shard.plan)
    prepare = pkgutil.resolve_name(_TASKS[plan["task"]])
    adopt_libraries()
    made: ShardFunction = prepare(context, shard.stage, plan)
    return made


def _next(runtime: Runtime, shard: Shard, worker: str) -> Shard | None:
    settings = runtime.settings
    with runtime.db.write() as session:
        if one_waits(session, takes(settings)):
            return None
        return claim_shard(
            session,
            shard.job_id,
            shard.stage,
            worker=worker,
            lease=settings.lease_seconds,
            max_crashes=settings.max_crashes,
        )


def _ignore(_progress: Progress) -> None:
    """The job's own worker tells how far the job is."""
