"""What a job's child tells of its stages, as figures and spans of this process.

They are kept here because the child may be killed at any instruction, and with it all that it has
not yet sent to anybody.
"""

import time
from dataclasses import dataclass

from app.core.jobs.lifecycle import Progress
from app.core.platform import tracing
from worker.context import StageBegan, StageEnded, StageEvent
from worker.supervision.metrics import metrics


@dataclass
class _Open:
    stage: str
    started_ns: int
    first: int
    completed: int

    @property
    def items(self) -> int:
        return self.completed - self.first


class StageWatch:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._open: _Open | None = None

    def progressed(self, progress: Progress) -> None:
        stage = self._open
        if stage is None or stage.stage != progress.stage or progress.completed <= stage.completed:
            return
        gained = progress.completed - stage.completed
        metrics.items.labels(self._kind, progress.stage).inc(gained)
        stage.completed = progress.completed

    def heard(self, news: StageEvent) -> None:
        if isinstance(news, StageBegan):
            completed = news.completed
            self._open = _Open(news.stage, time.time_ns(), completed, completed)
        else:
            self._end(news)

    def close(self, *, failed: bool) -> None:
        """The child has ended. The last stage tells of no end of its own: it ends the job."""
        if self._open is None:
            return
        stage, now = self._open, time.time_ns()
        seconds = (now - stage.started_ns) / 1e9
        if not failed:
            metrics.stage_seconds.labels(self._kind, stage.stage).observe(seconds)
        self._span(stage.stage, stage.started_ns, now, stage.items, failed=failed)
        self._open = None

    def _end(self, ended: StageEnded) -> None:
        items = self._open.items if self._open and self._open.stage == ended.stage else 0
        if ended.skipped:
            metrics.stages_skipped.labels(self._kind, ended.stage).inc()
        else:
            metrics.stage_seconds.labels(self._kind, ended.stage).observe(ended.seconds)
        now = time.time_ns()
        started = now - int(ended.seconds * 1e9)
        self._span(ended.stage, started, now, items, failed=False, skipped=ended.skipped)
        self._open = None

    def _span(
        self, stage: str, start: int, end: int, items: int, *, failed: bool, skipped: bool = False
    ) -> None:
        attributes = {"temi.stage": stage, "temi.items": items, "temi.skipped": skipped}
        tracing.record_span(f"stage {stage}", start, end, failed=failed, **attributes)
