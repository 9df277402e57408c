"""What a running job holds: its frozen row, its fence, and a way to say how far it is."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.jobs import Progress, check_fence, record_timing
from app.core.runtime import Runtime
from app.core.tables import Job

_REPORT_SECONDS = 0.25


@dataclass(frozen=True)
class JobContext:
    runtime: Runtime
    job: Job
    fence: int
    send: Callable[[Progress], None]

    @contextmanager
    def transaction(self) -> Iterator[Session]:
        """A transaction that commits only while this worker still holds the job."""
        with self.runtime.db.write() as session:
            check_fence(session, self.job.id, self.fence)
            yield session

    def record_timing(self, stage: str, seconds: float, *, skipped: bool) -> None:
        with self.runtime.db.write() as session:
            record_timing(session, self.job.id, self.fence, stage, seconds, skipped)

    def meter(self, stage: str, total: int, completed: int = 0) -> "Meter":
        return Meter(self, stage, total, completed)


class Meter:
    """Counts a stage's items and reports a few times a second, with the rate of this run."""

    def __init__(self, context: JobContext, stage: str, total: int, completed: int) -> None:
        self._context = context
        self._stage = stage
        self._first = completed
        self._started = time.monotonic()
        self._reported = 0.0
        self._unsaved_checkpoint = False
        self.total = total
        self.completed = completed
        self.failed = 0
        self.report(force=True)

    def advance(self, count: int = 1, *, failed: int = 0) -> None:
        self.to(self.completed + count, failed=failed)

    def to(self, completed: int, *, failed: int = 0) -> None:
        self.completed = completed
        self.failed += failed
        self.report()

    def checkpoint(self) -> None:
        """Work up to here is saved: a later crash will not start the count anew."""
        self._unsaved_checkpoint = True
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
                stage=self._stage,
                completed=self.completed,
                total=self.total,
                failed=self.failed,
                rate=rate,
                checkpoint=self._unsaved_checkpoint,
            )
        )
        self._unsaved_checkpoint = False
