"""Claims shards of jobs that other workers hold and supervises the process that runs them."""

import math
import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import structlog

from app.core.jobs.shards import ShardClaim, claim_any_shard, release_shard, renew_shard
from app.core.platform.errors import LeaseLost
from app.core.platform.logs import bound
from app.core.platform.tables import Shard
from app.core.runtime import Runtime
from worker.context import ShardClaimChanged
from worker.supervision import processes, shard_process
from worker.supervision.heartbeat import worker_name, worker_state
from worker.supervision.leased_process import LeasedProcess
from worker.supervision.metrics import metrics

log = structlog.get_logger()


def run_waiting_shards(runtime: Runtime, stopping: threading.Event) -> bool:
    """Runs shards of the job that comes first; returns False if no shard waits.

    A worker that failed or crashed does not try this job again: three workers that are too small
    for it must not fail a job that its own worker can do.
    """
    settings = runtime.settings
    with runtime.db.write() as session:
        shard = claim_any_shard(
            session,
            settings.worker_takes,
            worker=worker_name(),
            lease_seconds=settings.lease_seconds,
            max_crashes=settings.max_crashes,
            excluded_jobs=worker_state.excluded_jobs,
        )
    if shard is None:
        return False
    worker_state.start_work(shard.job_id, shard.stage)
    try:
        with bound(job_id=shard.job_id, stage=shard.stage):
            if not ShardSupervisor(runtime, shard).run(stopping):
                worker_state.excluded_jobs.add(shard.job_id)
    finally:
        worker_state.end_work()
    return True


class ShardSupervisor(LeasedProcess):
    """Supervises a process that runs shards of one stage, from its first shard to its last."""

    def __init__(self, runtime: Runtime, shard: Shard) -> None:
        super().__init__(runtime, shard.stage)
        self._shard = shard
        self._claim: ShardClaim | None = ShardClaim.of(shard)
        self._failed = False

    def run(self, stopping: threading.Event) -> bool:
        """Returns False if the process failed, crashed or stalled."""
        log.info("shard_process_started")
        ended = self.supervise(stopping)
        if ended.reason in ("lease_lost", "lease_expired"):
            log.info("shard_lease_lost")
            return True
        if ended.stall is not None:
            log.error("shard_stalled", seconds=round(ended.stall.seconds, 1))
        died = ended.crashed and not self._failed
        if died:
            log.error("shard_process_died", exit_code=ended.exit_code)
        crashed = died or ended.reason == "stalled"
        self._release(crashed=crashed)
        if ended.exit_code == processes.OUTAGE_EXIT_CODE:
            stopping.wait(self._settings.maintenance_seconds)
        return not crashed and not self._failed

    def _start(self) -> tuple[BaseProcess, Connection]:
        arguments = (self._settings, self._shard.id, worker_name())
        return processes.start(shard_process.main, *arguments, name="temi-shard")

    def _on_message(self, message: shard_process.Message) -> None:
        if isinstance(message, ShardClaimChanged):
            metrics.shards.labels(self._shard.stage).inc()  # the one before is done
            self._claim = message.claim
        elif isinstance(message, dict):
            self._failed = True

    @property
    def _renewal_seconds(self) -> float:
        return math.inf if self._claim is None else self._settings.heartbeat_seconds

    def _renew(self) -> bool:
        assert self._claim is not None
        with self._runtime.db.write() as session:
            if not renew_shard(session, self._claim, self._settings.lease_seconds):
                raise LeaseLost(f"Shard {self._claim.shard_id} is no longer held.")
        return True

    def _release(self, *, crashed: bool) -> None:
        claim = self._claim
        if claim is not None:
            self.write(lambda session: release_shard(session, claim, crashed=crashed))
