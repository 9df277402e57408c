"""What counts as progress, with a fake clock."""

import os

import pytest

from app.core.jobs.lifecycle import Progress
from worker.context import StageBegan
from worker.supervision import stalls
from worker.supervision.stalls import Alive, Computing, StallDetector

LIMIT = 100.0


class Clock:
    now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(stalls, "time", clock)
    return clock


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    used = {"seconds": 5.0}
    monkeypatch.setattr(StallDetector, "_read_cpu", lambda _self: used["seconds"])
    return used


def watch(clock: Clock) -> StallDetector:
    made = StallDetector(os.getpid(), LIMIT)
    made.note(StageBegan("embed"))
    made.note(Progress("embed", 1, 10))
    clock.now += LIMIT - 1
    return made


def test_silence_beyond_the_limit_is_a_stall(clock: Clock) -> None:
    watched = watch(clock)
    assert watched.find_stall() is None
    clock.now += 1
    stall = watched.find_stall()
    assert stall is not None
    assert (stall.stage, stall.seconds) == ("embed", LIMIT)
    assert stall.where == "in the stage embed"


def test_a_process_without_messages_stalls(clock: Clock, cpu: dict[str, float]) -> None:
    watched = StallDetector(os.getpid(), LIMIT)
    clock.now += LIMIT / 2
    cpu["seconds"] += LIMIT / 2  # it imports torch
    assert watched.find_stall() is None
    clock.now += LIMIT
    stall = watched.find_stall()
    assert stall is not None
    assert stall.where == "before its first stage"


@pytest.mark.parametrize(
    "message",
    [
        Progress("embed", 2, 10),
        Progress("embed", 1, 11),
        Progress("embed", 1, 10, failed=1),
        Progress("mine", 1, 10),
        Progress("embed", 1, 10, checkpoint=True),
        Alive(),
        StageBegan("mine"),
        Computing(active=True),
    ],
)
def test_messages_that_count_as_progress(
    clock: Clock, cpu: dict[str, float], message: object
) -> None:
    watched = watch(clock)
    watched.note(message)
    clock.now += LIMIT - 1
    assert watched.find_stall() is None


def test_unchanged_counts_are_no_progress(clock: Clock) -> None:
    watched = watch(clock)
    watched.note(Progress("embed", 1, 10, rate=3.0))
    clock.now += 1
    assert watched.find_stall() is not None


def test_cpu_time_counts_as_progress_while_computing(clock: Clock, cpu: dict[str, float]) -> None:
    watched = watch(clock)
    watched.note(Computing(active=True))
    for _ in range(5):
        clock.now += LIMIT / 2
        cpu["seconds"] += LIMIT / 2
        assert watched.find_stall() is None
    watched.note(Computing(active=False))
    clock.now += LIMIT
    cpu["seconds"] += LIMIT
    assert watched.find_stall() is not None


def test_computing_without_cpu_time_stalls(clock: Clock, cpu: dict[str, float]) -> None:
    watched = watch(clock)
    watched.note(Computing(active=True))
    clock.now += LIMIT
    cpu["seconds"] += 0.1
    assert watched.find_stall() is not None


def test_computing_without_end_stalls(clock: Clock, cpu: dict[str, float]) -> None:
    watched = watch(clock)
    watched.note(Computing(active=True))
    rounds = 0
    while watched.find_stall() is None:
        clock.now += LIMIT / 2
        cpu["seconds"] += LIMIT / 2
        rounds += 1
        assert rounds < 60
    assert rounds > 40


def test_the_cpu_time_of_a_process_is_read() -> None:
    assert StallDetector(os.getpid(), LIMIT)._read_cpu() > 0
