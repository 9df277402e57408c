"""Help with a job that another worker holds, and watch over the process that does it."""

import threading
import time
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

import structlog
from sqlalchemy.exc import DBAPIError

from app.core.jobs.shards import ShardClaim, claim_any_shard, keep_shard, release_shard
from app.core.platform.logs import bound
from app.core.platform.tables import Shard
from app.core.runtime import Runtime
from worker.context import ShardClaimChanged
from worker.supervision import processes
from worker.supervision import shard_process as helper
from worker.supervision.heartbeat import presence, worker_name
from worker.supervision.liveness import Alive, Computing, StallWatch
from worker.supervision.metrics import metrics
from worker.supervision.retried_writes import write_while
from worker.supervision.watchdog import Watchdog

_TICK_SECONDS = 0.5
log = structlog.get_logger()


def help_others(runtime: Runtime, stopping: threading.Event) -> bool:
    """Do pieces of the most urgent job that can be helped; False if none can.

    A worker that has failed or died at it does not try this job again: three that are too small
    for it must not fail a job that its own worker can do.
    """
    settings = runtime.settings
    with runtime.db.write() as session:
        shard = claim_any_shard(
            session,
            settings.worker_takes,
            worker=worker_name(),
            lease=settings.lease_seconds,
            max_crashes=settings.max_crashes,
            beside=presence.declined,
        )
    if shard is None:
        return False
    presence.working(shard.job_id, shard.stage)
    try:
        with bound(job_id=shard.job_id, stage=shard.stage):
            if not Help(runtime, shard).watch(stopping):
                presence.declined.add(shard.job_id)
    finally:
        presence.rest()
    return True


class Help:
    """One process that helps, from its first piece to its last."""

    def __init__(self, runtime: Runtime, shard: Shard) -> None:
        self._runtime = runtime
        self._shard = shard
        self._held: ShardClaim | None = ShardClaim.of(shard)
        self._error: dict[str, object] | None = None
        self._beat_at = self._alive_at = time.monotonic()

    def watch(self, stopping: threading.Event) -> bool:
        """Whether it went well; help that is no longer wanted did."""
        log.info("help_started")
        settings = self._runtime.settings
        process, connection = self._start_child()
        self._liveness = StallWatch(process.pid, settings.stall_seconds, self._shard.stage)
        with Watchdog(settings.self_kill_seconds, process.kill) as self._dog:
            try:
                while self._listen(connection):
                    if stopping.is_set():
                        processes.end(process)
                        self._release(crashed=False)
                        return True
                    if not self._keep_lease():
                        log.info("help_not_wanted")
                        return True
                    if self._has_stalled():
                        processes.end(process)
                        self._release(crashed=True)
                        return False
                process.join()
                if process.exitcode == processes.OUTAGE:
                    self._release(crashed=False)
                    stopping.wait(self._runtime.settings.maintenance_seconds)
                    return True
                return self._conclude(process.exitcode or 0)
            finally:
                processes.end(process)
                connection.close()

    def _start_child(self) -> tuple[BaseProcess, Connection]:
        arguments = (self._runtime.settings, self._shard.id, worker_name())
        return processes.start(helper.main, *arguments, name="temi-help")

    def _listen(self, connection: Connection) -> bool:
        """Take in what the child says for one tick; False when it has said its last."""
        until = time.monotonic() + _TICK_SECONDS
        try:
            while connection.poll(max(0.0, until - time.monotonic())):
                message: helper.Message = connection.recv()
                if isinstance(message, ShardClaimChanged):
                    metrics.shards.labels(self._shard.stage).inc()  # it has done the one before
                    self._held = message.held
                    self._liveness.note(message)
                elif isinstance(message, Alive | Computing):
                    self._liveness.note(message)
                else:
                    self._error = message
        except EOFError:
            return False
        return True

    def _keep_lease(self) -> bool:
        settings, now = self._runtime.settings, time.monotonic()
        held = self._held
        if now - self._beat_at < settings.heartbeat_seconds or held is None:
            return True
        self._beat_at = now
        try:
            with self._runtime.db.write() as session:
                kept = keep_shard(session, held, settings.lease_seconds)
        except DBAPIError as error:
            metrics.heartbeat_failures.inc()
            log.warning("heartbeat_failed", reason=str(error.orig))
            return not self._overdue
        self._dog.reset()
        self._alive_at = now
        # The child may have ended this piece and claimed the next one in the meantime.
        return kept or held != self._held

    def _has_stalled(self) -> bool:
        """If so, the piece goes to another worker, or to the one that holds the job."""
        stall = self._liveness.find_stall()
        if stall is not None:
            log.error("help_stalled", seconds=round(stall.seconds, 1))
        return stall is not None

    @property
    def _overdue(self) -> bool:
        """The lease may not be ours much longer."""
        return time.monotonic() - self._alive_at > self._runtime.settings.self_kill_seconds

    def _conclude(self, exit_code: int) -> bool:
        died = exit_code != 0 and self._error is None and not self._dog.timed_out
        if died:
            log.error("child_died", exit_code=exit_code)
        self._release(crashed=died)
        return not died and self._error is None

    def _release(self, *, crashed: bool) -> None:
        held = self._held
        if held is not None:
            write_while(
                self._runtime.db,
                lambda: not self._overdue,
                lambda session: release_shard(session, held, crashed=crashed),
            )
