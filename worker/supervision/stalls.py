"""Finds processes that make no progress.

Heartbeats only show that the supervising process is alive. A job makes progress when its counts
change, when a checkpoint is saved, or when the stage itself reports finished work. A library call
that cannot report is announced as computing: then the CPU time of the process counts as progress,
because a process that waits uses none.
"""

import time
from dataclasses import dataclass

import psutil

from app.core.jobs.lifecycle import Progress

# Of one core, over the whole time without progress. A waiting process stays far below it, also
# with threads that wake up sometimes; one that computes on a crowded machine is above it.
_MIN_CPU_SHARE = 0.01
# A call that keeps a core busy without end is killed after this many times the allowed silence.
_MAX_COMPUTING = 24


@dataclass(frozen=True)
class Alive:
    """A stage has finished work that its counts do not show."""


@dataclass(frozen=True)
class Computing:
    """A call that cannot report begins (`active`) or has ended."""

    active: bool


LivenessSignal = Alive | Computing


@dataclass(frozen=True)
class Stall:
    """How long a process made no progress, and in which stage."""

    stage: str | None
    seconds: float

    @property
    def where(self) -> str:
        return f"in the stage {self.stage}" if self.stage else "before its first stage"


class StallDetector:
    """Reads the messages of one process; `find_stall` returns a stall after too long a silence."""

    def __init__(self, pid: int | None, limit_seconds: float, stage: str | None = None) -> None:
        self._pid = pid
        self._limit = limit_seconds
        self._stage = stage
        self._counts: tuple[object, ...] | None = None
        self._computing = True  # until its first message: importing torch may take a minute
        self._cpu_seconds = 0.0
        self._alive_at = self._reported_at = time.monotonic()

    def note(self, message: object) -> None:
        """Takes a message of the process. Progress counts only if it differs from the last one."""
        if isinstance(message, Progress):
            counts = (message.stage, message.completed, message.total, message.failed)
            changed, self._counts = counts != self._counts, counts
            self._stage = message.stage
            if not changed and not message.checkpoint:
                return
        if isinstance(message, Computing):
            self._computing = message.active
        elif not isinstance(message, Progress | Alive):
            self._computing = False  # a stage or a shard begins or ends
        self._alive_at = self._reported_at = time.monotonic()
        self._cpu_seconds = self._read_cpu() if self._computing else 0.0

    def enter_stage(self, stage: str) -> None:
        self._stage = stage
        self.note(Alive())

    def find_stall(self) -> Stall | None:
        now = time.monotonic()
        longest = _MAX_COMPUTING * self._limit
        if self._computing and now - self._reported_at < longest:
            self._note_cpu(now)
        if now - self._alive_at < self._limit:
            return None
        return Stall(self._stage, now - self._reported_at)

    def _note_cpu(self, now: float) -> None:
        used = self._read_cpu()
        if used - self._cpu_seconds >= _MIN_CPU_SHARE * self._limit:
            self._alive_at, self._cpu_seconds = now, used

    def _read_cpu(self) -> float:
        try:
            times = psutil.Process(self._pid).cpu_times()
        except psutil.Error:  # it has ended, and its supervisor is about to notice
            return 0.0
        return float(times.user + times.system)
