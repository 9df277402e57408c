"""Claims jobs and supervises the process that runs each of them."""

import threading
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import structlog
from sqlalchemy.orm import Session

from app.core.jobs.finished import is_retryable
from app.core.jobs.lifecycle import Progress, claim_next, finish, heartbeat, release
from app.core.jobs.requests.ingest import upload_keys
from app.core.jobs.shards import ShardClaim, release_shard, renew_shard
from app.core.platform import tracing
from app.core.platform.errors import LeaseLost
from app.core.platform.logs import bound
from app.core.platform.tables import FINAL, Job
from app.core.runtime import Runtime
from app.core.storage.deletion.retention import delete_unless_retained
from worker.context import ShardClaimChanged, StageBegan, StageEnded
from worker.supervision import job_process, processes
from worker.supervision.heartbeat import available_resources, worker_name, worker_state
from worker.supervision.leased_process import Exit, LeasedProcess
from worker.supervision.metrics import metrics
from worker.supervision.shard_supervisor import run_waiting_shards
from worker.supervision.stage_metrics import StageRecorder
from worker.supervision.stalls import Stall

_PROGRESS_SECONDS = 1.0
log = structlog.get_logger()


def run_waiting_jobs(runtime: Runtime, stopping: threading.Event) -> int:
    """Runs jobs until none waits, and shards of other workers' jobs; returns the number of jobs.

    A notification may be about a job that another worker has claimed, and the notification of a
    waiting job may have been used up by another job. So every worker queries before it sleeps.
    """
    count = 0
    while not stopping.is_set():
        job = _claim_next(runtime)
        if job is None:
            if run_waiting_shards(runtime, stopping):
                continue
            break
        count += 1
        if run_claimed_job(runtime, job, stopping) == "crashed":
            # The cause of the crash may last for a while.
            stopping.wait(runtime.settings.maintenance_seconds)
    return count


def _claim_next(runtime: Runtime) -> Job | None:
    settings = runtime.settings
    with runtime.db.write() as session:
        return claim_next(
            session,
            worker=worker_name(),
            lease_seconds=settings.lease_seconds,
            resources=available_resources(settings),
        )


def run_claimed_job(runtime: Runtime, job: Job, stopping: threading.Event) -> str:
    """Returns the outcome: the job's final status, or crashed, released or lost."""
    ids = {"job_id": job.id, "kind": job.kind, "fence": job.fence}
    attributes = {f"temi.{name}": value for name, value in ids.items()}
    trace_id = tracing.trace_id_of(job.traceparent)
    with (
        bound(**ids, request_id=job.request_id, trace_id=trace_id),
        tracing.attempt_span(f"job {job.kind}", job.traceparent, **attributes) as span,
        metrics.busy.labels(job.kind).track_inprogress(),
    ):
        supervisor = JobSupervisor(runtime, job)
        worker_state.start_work(job.id)
        try:
            supervisor.run(stopping)
        finally:
            outcome = supervisor.outcome
            worker_state.end_work()
            metrics.attempts.labels(job.kind, outcome).inc()
            failed = outcome not in ("succeeded", "cancelled", "released")
            tracing.describe(span, failed=failed, **{"temi.outcome": outcome})
    return outcome


class JobSupervisor(LeasedProcess):
    """Supervises one attempt at a job, from its claim to the end of the process."""

    grace_seconds = 5.0  # the process may have just committed the end of the job

    def __init__(self, runtime: Runtime, job: Job) -> None:
        super().__init__(runtime)
        self._job = job
        self._error: dict[str, Any] | None = None
        self._progress: Progress | None = None
        self._shard: ShardClaim | None = None
        self._stages = StageRecorder(job.kind)
        self.outcome = "lost"
        """The final status if this attempt ended the job; else crashed, released or lost."""

    def run(self, stopping: threading.Event) -> None:
        try:
            if self._job.status == "cancelling":
                self._finish("cancelled")
            elif self._job.crashes >= self._settings.max_crashes:
                self._fail_crashed()
            else:
                log.info("job_started")
                self._conclude(self.supervise(stopping))
        except LeaseLost:
            self._read_outcome()
        finally:
            self._stages.close(failed=self.outcome != "succeeded")

    def _start(self) -> tuple[BaseProcess, Connection]:
        arguments = (self._settings, self._job.id, self._job.fence)
        return processes.start(job_process.main, *arguments, name="temi-job")

    def _on_message(self, message: job_process.Message) -> None:
        if isinstance(message, Progress):
            self._stages.on_progress(message)
            saved = self._progress is not None and self._progress.checkpoint
            self._progress = message if not saved else _with_checkpoint(message)
        elif isinstance(message, dict):
            self._error = message
        elif isinstance(message, ShardClaimChanged):
            self._shard = message.claim
        elif isinstance(message, StageBegan | StageEnded):
            self._stalls.enter_stage(message.stage)
            worker_state.start_work(self._job.id, message.stage)
            self._stages.on_stage_event(message)

    @property
    def _renewal_seconds(self) -> float:
        return _PROGRESS_SECONDS if self._progress else self._settings.heartbeat_seconds

    def _renew(self) -> bool:
        with self._runtime.db.write() as session:
            status = self._heartbeat(session)
        self._progress = None
        return status != "cancelling"

    def _heartbeat(self, session: Session) -> str:
        lease_seconds = self._settings.lease_seconds
        if self._shard is not None:  # if it is lost, another worker makes the same file
            renew_shard(session, self._shard, lease_seconds)
        return heartbeat(
            session,
            self._job.id,
            self._job.fence,
            lease_seconds=lease_seconds,
            progress=self._progress,
        )

    def _conclude(self, ended: Exit) -> None:
        if ended.reason == "stopping":
            self._release(crashed=False)
        elif ended.reason == "cancelled":
            self._finish("cancelled")
        elif ended.stall is not None:
            self._fail_stalled(ended.stall)
        elif ended.reason == "exited" and self._error is not None:
            self._finish("failed", self._error)
        elif ended.exit_code != 0:
            log.error("job_process_died", exit_code=ended.exit_code)
            if self._progress is not None:
                self.write(self._heartbeat)  # counts a checkpoint reported just before the end
            self._release(crashed=ended.crashed)
        elif ended.reason == "lease_expired":
            log.warning("lease_expired")
        else:
            self._read_outcome()

    def _finish(self, status: str, error: dict[str, Any] | None = None) -> None:
        def write(session: Session) -> None:
            finish(session, self._job.id, self._job.fence, status=status, error=error)

        self.write(write)
        if self._job.kind == "ingest" and not is_retryable(error):
            delete_unless_retained(self._runtime.db, self._runtime.storage, upload_keys(self._job))
        self.outcome = status
        log.info("job_ended", status=status, error=error)

    def _fail_crashed(self) -> None:
        detail = (
            f"The job's process died {self._job.crashes} times without progress; see the log of "
            "the worker."
        )
        self._finish("failed", {"code": "worker_crashed", "detail": detail})

    def _fail_stalled(self, stall: Stall) -> None:
        """Does not queue the job again: it would stall one worker after the other."""
        log.error("job_stalled", stage=stall.stage, seconds=round(stall.seconds, 1))
        detail = (
            f"The job made no progress for {stall.seconds:.0f} s {stall.where} and was ended "
            f"(TEMI_STALL_SECONDS is {self._settings.stall_seconds:g}). Check the storage, "
            "the source and the worker's log, then retry the job; raise the setting if the work "
            "is only slow."
        )
        self._finish("failed", {"code": "stalled", "detail": detail})

    def _read_outcome(self) -> None:
        """Reads the final status that the process has committed, unless the lease was lost."""
        with self._runtime.db.read() as session:
            job = session.get(Job, self._job.id)
        if job is not None and job.fence == self._job.fence and job.status in FINAL:
            self.outcome = job.status
            log.info("job_ended", status=job.status)
        else:
            log.warning("lease_lost")

    def _release(self, *, crashed: bool) -> None:
        def write(session: Session) -> None:
            if self._shard is not None:
                release_shard(session, self._shard, crashed=crashed)
            release(session, self._job.id, self._job.fence, crashed=crashed)

        self.write(write)
        self.outcome = "crashed" if crashed else "released"


def _with_checkpoint(progress: Progress) -> Progress:
    return Progress(**{**vars(progress), "checkpoint": True})
