"""Metrics and spans of a job's stages, recorded by the process that supervises the job.

The job's own process may be killed at any instruction, and its unsent metrics with it.
"""

import time
from dataclasses import dataclass

from app.core.jobs.lifecycle import Progress
from app.core.platform import tracing
from worker.context import StageBegan, StageEnded, StageEvent
from worker.supervision.metrics import metrics


@dataclass
class _OpenStage:
    name: str
    started_ns: int
    first: int
    completed: int

    @property
    def items(self) -> int:
        return self.completed - self.first


class StageRecorder:
    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._open: _OpenStage | None = None

    def on_progress(self, progress: Progress) -> None:
        stage = self._open
        if stage is None or stage.name != progress.stage or progress.completed <= stage.completed:
            return
        gained = progress.completed - stage.completed
        metrics.items.labels(self._kind, progress.stage).inc(gained)
        stage.completed = progress.completed

    def on_stage_event(self, event: StageEvent) -> None:
        if isinstance(event, StageBegan):
            completed = event.completed
            self._open = _OpenStage(event.stage, time.time_ns(), completed, completed)
        else:
            self._end(event)

    def close(self, *, failed: bool) -> None:
        """Ends the last stage, which sends no event: its end is the end of the job."""
        if self._open is None:
            return
        stage, now = self._open, time.time_ns()
        seconds = (now - stage.started_ns) / 1e9
        if not failed:
            metrics.stage_seconds.labels(self._kind, stage.name).observe(seconds)
        self._add_span(stage.name, stage.started_ns, now, stage.items, failed=failed)
        self._open = None

    def _end(self, ended: StageEnded) -> None:
        items = self._open.items if self._open and self._open.name == ended.stage else 0
        if ended.skipped:
            metrics.stages_skipped.labels(self._kind, ended.stage).inc()
        else:
            metrics.stage_seconds.labels(self._kind, ended.stage).observe(ended.seconds)
        now = time.time_ns()
        started = now - int(ended.seconds * 1e9)
        self._add_span(ended.stage, started, now, items, failed=False, skipped=ended.skipped)
        self._open = None

    def _add_span(
        self, stage: str, start: int, end: int, items: int, *, failed: bool, skipped: bool = False
    ) -> None:
        attributes = {"temi.stage": stage, "temi.items": items, "temi.skipped": skipped}
        tracing.record_span(f"stage {stage}", start, end, failed=failed, **attributes)
