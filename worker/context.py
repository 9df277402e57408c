"""The context of a running job: its row, its fence, and how it reports progress."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.core.jobs import records as job_records
from app.core.jobs.lifecycle import Progress, check_fence, record_timing
from app.core.jobs.shards import ShardClaim
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from worker.supervision.stalls import Alive, Computing, LivenessSignal

_REPORT_SECONDS = 0.25
_ALIVE_SECONDS = 1.0


@dataclass(frozen=True)
class StageBegan:
    stage: str
    completed: int = 0  # by an earlier attempt


@dataclass(frozen=True)
class StageEnded:
    stage: str
    seconds: float
    skipped: bool


StageEvent = StageBegan | StageEnded


@dataclass(frozen=True)
class ShardClaimChanged:
    """The shard that this process runs now, or None; the supervisor renews its lease."""

    claim: ShardClaim | None


def _ignore(_message: StageEvent | ShardClaimChanged | LivenessSignal) -> None:
    """The default of the callbacks."""


@dataclass(frozen=True)
class JobContext:
    runtime: Runtime
    job: Job
    fence: int
    send: Callable[[Progress], None]
    on_stage_event: Callable[[StageEvent], None] = _ignore
    on_shard_claim: Callable[[ShardClaimChanged], None] = _ignore
    on_liveness: Callable[[LivenessSignal], None] = _ignore
    _begun: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A transaction that commits only while this worker holds the job."""
        with self.runtime.db.write() as session:
            check_fence(session, self.job.id, self.fence)
            yield session

    def record_timing(self, stage: str, seconds: float, *, skipped: bool) -> None:
        with self.runtime.db.write() as session:
            record_timing(session, self.job.id, self.fence, stage, seconds, skipped)
        self.on_stage_event(StageEnded(stage, seconds, skipped))

    def report_claim(self, claim: ShardClaim | None) -> None:
        self.on_shard_claim(ShardClaimChanged(claim))

    @contextmanager
    def computing(self) -> Iterator[None]:
        """For a call that may take long and cannot report: until it ends, the CPU time of this
        process counts as progress. Not for a call that waits for a disk or a server."""
        self.on_liveness(Computing(active=True))
        try:
            yield
        finally:
            self.on_liveness(Computing(active=False))

    def log(self, message: str, level: str = "info") -> None:
        """Adds a line to the job's log, which users read."""
        most = job_records.MAX_LINES - job_records.LAST_LINES
        with self.transaction() as session:
            job_records.add_log(session, self.job.id, message, level, max_lines=most)

    def add_curve(self, step: int, values: dict[str, Any]) -> None:
        """Adds a point to the job's curves, such as losses; replaces one of the same step."""
        with self.transaction() as session:
            job_records.add_curve(session, self.job.id, step, values)

    def delete_curve_after(self, step: int) -> None:
        """For a run that resumes from a checkpoint of this step."""
        with self.transaction() as session:
            job_records.delete_curve_after(session, self.job.id, step)

    def start_progress(self, stage: str, total: int, completed: int = 0) -> "ProgressReporter":
        if stage not in self._begun:
            self._begun.add(stage)
            self.on_stage_event(StageBegan(stage, completed))
            how = f"resumed at {completed} of {total}" if completed else "started"
            self.log(f"Stage {stage} {how}.")
        return ProgressReporter(self, stage, total, completed)


class ActivityReporter:
    """Sends `Alive` at most once a second; any thread may call it."""

    def __init__(self, send: Callable[[LivenessSignal], None]) -> None:
        self._send = send
        self._sent_at = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now - self._sent_at >= _ALIVE_SECONDS:
            self._sent_at = now
            self._send(Alive())


class ProgressReporter:
    """Counts a stage's items and reports a few times a second, with the rate of this run."""

    def __init__(self, context: JobContext, stage: str, total: int, completed: int) -> None:
        self._context = context
        self.stage = stage
        self._first = completed
        self._started = time.monotonic()
        self._reported = 0.0
        self._unsent_checkpoint = False
        self.total = total
        self.completed = completed
        self.failed = 0
        self.skipped = 0
        self.report(force=True)

    def advance(self, count: int = 1, *, failed: int = 0, skipped: int = 0) -> None:
        self.failed += failed
        self.skipped += skipped
        self.advance_to(self.completed + count)

    def advance_to(self, completed: int) -> None:
        self.completed = completed
        self.report()

    def checkpoint(self) -> None:
        """Reports that the work so far is saved, which resets the job's count of crashes."""
        self._unsent_checkpoint = True
        self.report(force=True)

    def report(self, *, force: bool = False) -> None:
        now = time.monotonic()
        if not force and now - self._reported < _REPORT_SECONDS:
            return
        self._reported = now
        elapsed = now - self._started
        rate = (self.completed - self._first) / elapsed if elapsed > 0.5 else None
        self._context.send(
            Progress(
                stage=self.stage,
                completed=self.completed,
                total=self.total,
                failed=self.failed,
                skipped=self.skipped,
                rate=rate,
                checkpoint=self._unsent_checkpoint,
            )
        )
        self._unsent_checkpoint = False
