"""The process that runs shards of another worker's job. It may be killed at any instruction.

It writes only the files of the shards and that they are done: another worker holds the job.
"""

import os
import pkgutil
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import structlog

from app.core.jobs.lifecycle import Progress, has_claimable_job
from app.core.jobs.shards import ShardClaim, claim_shard
from app.core.platform.activity import listen_to_activity, report_activity
from app.core.platform.logs import adopt_libraries, bind_process, configure_logging
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings
from app.core.platform.tables import Job, Shard
from app.core.platform.tracing import trace_id_of
from app.core.runtime import Runtime
from worker.context import ActivityReporter, JobContext, ShardClaimChanged
from worker.stages.artifacts import load_json
from worker.stages.sharded_stage import ShardFunction, run_shard
from worker.supervision import processes
from worker.supervision.heartbeat import available_resources
from worker.supervision.stalls import LivenessSignal

Message = ShardClaimChanged | LivenessSignal | dict[str, object]
"""The shard that it runs, and signs of progress; at the end of a failed process, its error."""

_NO_FENCE = -1  # writes about the job have no effect
_PREPARE = {  # by the task that a stage's plan names
    "embed": "worker.stages.embedding_shards:prepare_embed_shard",
    "mine": "worker.stages.neighbor_shards:prepare_mine_shard",
}
log = structlog.get_logger()


def main(
    settings: Settings, shard_id: str, worker: str, connection: Connection, parent_pid: int
) -> None:
    die_with_parent(parent_pid)
    configure_logging(settings)
    bind_process(pid=os.getpid())
    send = processes.locked_send(connection)
    listen_to_activity(ActivityReporter(send))
    try:
        run_shards(Runtime(settings), shard_id, worker, send)
    except Exception as error:
        processes.exit_if_outage(error)
        # The worker that holds the job runs the shard itself and reports the same error.
        log.warning("shard_failed", exc_info=True)
        send({"detail": f"{type(error).__name__}: {error}"})
        sys.exit(0)


def run_shards(
    runtime: Runtime, shard_id: str, worker: str, send: Callable[[Message], None]
) -> None:
    """Runs this shard and more of its stage, until none is left or a job waits for this worker."""
    with runtime.db.read() as session:
        first = session.get_one(Shard, shard_id)
        job = session.get_one(Job, first.job_id)
    bind_process(job_id=job.id, kind=job.kind, stage=first.stage)
    bind_process(request_id=job.request_id, trace_id=trace_id_of(job.traceparent))
    context = JobContext(runtime, job, _NO_FENCE, _ignore, on_shard_claim=send, on_liveness=send)
    plan, compute = first.plan, load_shard_function(context, first)
    shard: Shard | None = first
    while shard is not None:
        if shard.plan != plan:
            plan, compute = shard.plan, load_shard_function(context, shard)
        run_shard(runtime, shard, compute, lambda _rows: report_activity())
        shard = _claim_next(runtime, shard, worker)
        context.report_claim(ShardClaim.of(shard) if shard is not None else None)


def load_shard_function(context: JobContext, shard: Shard) -> ShardFunction:
    """Returns the function that computes shards by the plan of this one."""
    plan: dict[str, Any] = load_json(context.runtime.storage, shard.plan)
    prepare = pkgutil.resolve_name(_PREPARE[plan["task"]])
    adopt_libraries()
    processes.limit_threads(context.runtime.settings)
    function: ShardFunction = prepare(context, shard.stage, plan)
    return function


def _claim_next(runtime: Runtime, shard: Shard, worker: str) -> Shard | None:
    settings = runtime.settings
    with runtime.db.write() as session:
        if has_claimable_job(session, available_resources(settings)):
            return None
        return claim_shard(
            session,
            shard.job_id,
            shard.stage,
            worker=worker,
            lease_seconds=settings.lease_seconds,
            max_crashes=settings.max_crashes,
        )


def _ignore(_progress: Progress) -> None:
    """The worker that holds the job reports its progress."""
