"""Claim a job and watch over the process that works on it.

This process stays free of torch and of long calculations, so its heartbeat comes in time
whatever the child is busy with.
"""

import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import structlog
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from app.core.jobs.finished import may_pass
from app.core.jobs.lifecycle import Progress, claim, claim_next, finish, heartbeat, release
from app.core.jobs.requests.ingest import upload_keys
from app.core.jobs.shards import ShardClaim, keep_shard, release_shard
from app.core.platform import tracing
from app.core.platform.errors import LeaseLost
from app.core.platform.logs import bound
from app.core.platform.tables import FINAL, Job
from app.core.runtime import Runtime
from app.core.storage.deletion.retention import delete_unless_retained
from worker.context import ShardClaimChanged
from worker.supervision import job_process as child
from worker.supervision import processes
from worker.supervision.heartbeat import presence, takes, worker_name
from worker.supervision.liveness import Alive, Computing, Stall, StallWatch
from worker.supervision.metrics import metrics
from worker.supervision.retried_writes import write_while
from worker.supervision.shard_supervisor import help_others
from worker.supervision.stage_metrics import StageWatch
from worker.supervision.watchdog import Watchdog

_TICK_SECONDS = 0.5
_PROGRESS_SECONDS = 1.0
_GRACE_SECONDS = 5.0
log = structlog.get_logger()


def run_waiting(runtime: Runtime, stopping: threading.Event) -> int:
    """Do whatever waits, the most urgent first, until nothing does; returns how many were done.

    A message that wakes a worker may be about a job that another one has taken, and the message
    of a waiting job may have been used up so: nobody goes to sleep without having looked.
    """
    done = 0
    while not stopping.is_set():
        job = _claim_next(runtime)
        if job is None:
            if help_others(runtime, stopping):
                continue
            break
        done += 1
        if _attempt(runtime, job, stopping):
            stopping.wait(runtime.settings.maintenance_seconds)  # what killed it may still be there
    return done


def _claim_next(runtime: Runtime) -> Job | None:
    settings = runtime.settings
    with runtime.db.write() as session:
        return claim_next(
            session,
            worker=worker_name(),
            lease_seconds=settings.lease_seconds,
            takes=takes(settings),
        )


def run_job(runtime: Runtime, job_id: str, stopping: threading.Event) -> None:
    """Do this one job, if it is to be had."""
    lease = runtime.settings.lease_seconds
    with runtime.db.write() as session:
        job = claim(session, job_id, worker=worker_name(), lease_seconds=lease)
    if job is not None:
        _attempt(runtime, job, stopping)


def _attempt(runtime: Runtime, job: Job, stopping: threading.Event) -> bool:
    """Whether the process that did the work died."""
    ids = {"job_id": job.id, "kind": job.kind, "fence": job.fence}
    attributes = {f"temi.{name}": value for name, value in ids.items()}
    trace_id = tracing.trace_id_of(job.traceparent)
    with (
        bound(**ids, request_id=job.request_id, trace_id=trace_id),
        tracing.attempt_span(f"job {job.kind}", job.traceparent, **attributes) as span,
        metrics.busy.labels(job.kind).track_inprogress(),
    ):
        attempt = Attempt(runtime, job)
        presence.working(job.id)
        try:
            _take(attempt, runtime, job, stopping)
        finally:
            presence.rest()
            metrics.attempts.labels(job.kind, attempt.outcome).inc()
            failed = attempt.outcome not in ("succeeded", "cancelled", "released")
            tracing.describe(span, failed=failed, **{"temi.outcome": attempt.outcome})
    return attempt.outcome == "crashed"


def _take(attempt: "Attempt", runtime: Runtime, job: Job, stopping: threading.Event) -> None:
    if job.status == "cancelling":
        attempt.end("cancelled")
    elif job.crashes >= runtime.settings.max_crashes:
        attempt.fail_crashed(job.crashes)
    else:
        log.info("job_started")
        attempt.watch(stopping)


class Attempt:
    """One claim of a job, from the fence that was given out to the end of its child."""

    def __init__(self, runtime: Runtime, job: Job) -> None:
        self._runtime = runtime
        self._job = job
        self._error: dict[str, Any] | None = None
        self._progress: Progress | None = None
        self._shard: ShardClaim | None = None
        self._stages = StageWatch(job.kind)
        self._beat_at = self._alive_at = time.monotonic()
        self.outcome = "lost"
        """As long as nothing else is known; a job's own status where this attempt ended it."""

    def watch(self, stopping: threading.Event) -> None:
        settings = self._runtime.settings
        process, connection = self._start_child()
        self._liveness = StallWatch(process.pid, settings.stall_seconds)
        with Watchdog(settings.self_kill_seconds, process.kill) as self._dog:
            self._watch(process, connection, stopping)

    def _watch(
        self, process: BaseProcess, connection: Connection, stopping: threading.Event
    ) -> None:
        try:
            while self._listen(connection):
                if stopping.is_set():
                    processes.end(process)
                    self._release(crashed=False)
                    return
                if not self._keep_lease():
                    return
                if (stall := self._liveness.find_stall()) is not None:
                    processes.end(process)
                    self.fail_stalled(stall)
                    return
            process.join()
            self._conclude(process.exitcode or 0)
        except LeaseLost:
            # Either the child has just committed the end of the job, or its writes are void.
            process.join(_GRACE_SECONDS)
            self._listen(connection)
            self._note_end()
        finally:
            processes.end(process)
            connection.close()
            self._stages.close(failed=self.outcome != "succeeded")

    def end(self, status: str, error: dict[str, Any] | None = None) -> None:
        def write(session: Session) -> None:
            finish(session, self._job.id, self._job.fence, status=status, error=error)

        self._write(write)
        if self._job.kind == "ingest" and not may_pass(error):
            delete_unless_retained(self._runtime.db, self._runtime.storage, upload_keys(self._job))
        self.outcome = status
        log.info("job_ended", status=status, error=error)

    def fail_crashed(self, crashes: int) -> None:
        detail = f"The worker died {crashes} times without getting further; see its log."
        self.end("failed", {"code": "worker_crashed", "detail": detail})

    def fail_stalled(self, stall: Stall) -> None:
        """Not tried again by itself: what hangs once would keep one worker after the other busy."""
        log.error("job_stalled", stage=stall.stage, seconds=round(stall.seconds, 1))
        detail = (
            f"The job made no progress for {stall.seconds:.0f} s {stall.where} and was ended "
            f"(TEMI_STALL_SECONDS is {self._runtime.settings.stall_seconds:g}). Check the storage, "
            "the source and the worker's log, then retry the job; raise the setting if the work "
            "is only slow."
        )
        self.end("failed", {"code": "stalled", "detail": detail})

    def _start_child(self) -> tuple[BaseProcess, Connection]:
        arguments = (self._runtime.settings, self._job.id, self._job.fence)
        return processes.start(child.main, *arguments, name="temi-job")

    def _listen(self, connection: Connection) -> bool:
        """Take in what the child says for one tick; False when it has said its last."""
        until = time.monotonic() + _TICK_SECONDS
        try:
            while connection.poll(max(0.0, until - time.monotonic())):
                message: child.Message = connection.recv()
                self._liveness.note(message)
                if isinstance(message, Progress):
                    self._stages.progressed(message)
                    saved = self._progress is not None and self._progress.checkpoint
                    self._progress = message if not saved else _with_checkpoint(message)
                elif isinstance(message, dict):
                    self._error = message
                elif isinstance(message, ShardClaimChanged):
                    self._shard = message.held
                elif not isinstance(message, Alive | Computing):
                    self._liveness.enter_stage(message.stage)
                    presence.working(self._job.id, message.stage)
                    self._stages.heard(message)
        except EOFError:
            return False
        return True

    def _keep_lease(self) -> bool:
        """Write a heartbeat when one is due; False when the job is ours no more."""
        settings, now = self._runtime.settings, time.monotonic()
        pause = _PROGRESS_SECONDS if self._progress else settings.heartbeat_seconds
        if now - self._beat_at < pause:
            return True
        self._beat_at = now
        try:
            status = self._heartbeat()
        except DBAPIError as error:
            metrics.heartbeat_failures.inc()
            log.warning("heartbeat_failed", reason=str(error.orig))
            return not self._overdue
        self._dog.reset()
        self._alive_at, self._progress = now, None
        if status == "cancelling":
            self.end("cancelled")
            return False
        return True

    @property
    def _overdue(self) -> bool:
        """The lease may not be ours much longer."""
        return time.monotonic() - self._alive_at > self._runtime.settings.self_kill_seconds

    def _heartbeat(self) -> str:
        with self._runtime.db.write() as session:
            return self._beat(session)

    def _beat(self, session: Session) -> str:
        if self._shard is not None:  # if it is lost, another worker makes the same file
            keep_shard(session, self._shard, self._runtime.settings.lease_seconds)
        return heartbeat(
            session,
            self._job.id,
            self._job.fence,
            lease_seconds=self._runtime.settings.lease_seconds,
            progress=self._progress,
        )

    def _conclude(self, exit_code: int) -> None:
        if self._error is not None:
            self.end("failed", self._error)
        elif exit_code != 0:
            log.error("child_died", exit_code=exit_code)
            if self._progress is not None:
                self._write(self._beat)  # a checkpoint it told of just before it died counts
            excused = exit_code == processes.OUTAGE or self._dog.timed_out
            self._release(crashed=not excused)
        else:
            self._note_end()

    def _note_end(self) -> None:
        """The child has committed the end of the job, unless the job was no longer its own."""
        with self._runtime.db.read() as session:
            job = session.get(Job, self._job.id)
        if job is not None and job.fence == self._job.fence and job.status in FINAL:
            self.outcome = job.status
            log.info("job_ended", status=job.status)
        else:
            log.info("job_let_go")

    def _release(self, *, crashed: bool) -> None:
        def write(session: Session) -> None:
            if self._shard is not None:
                release_shard(session, self._shard, crashed=crashed)
            release(session, self._job.id, self._job.fence, crashed=crashed)

        self._write(write)
        self.outcome = "crashed" if crashed else "released"

    def _write(self, action: Callable[[Session], object]) -> None:
        write_while(self._runtime.db, lambda: not self._overdue, action)


def _with_checkpoint(progress: Progress) -> Progress:
    return Progress(**{**vars(progress), "checkpoint": True})
