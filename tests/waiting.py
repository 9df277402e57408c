"""Waits for conditions, so that no test depends on the speed of the machine.

Limits here only prevent waiting forever, and are far above the times of a busy machine. A test that
needs something to have happened waits for it with `wait_until`; durations are measured by
benchmarks and by `make chaos` alone.
"""

import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import psutil

LONG_SECONDS = 240.0
_PAUSE_SECONDS = 0.02

# Settings of a service under test: it may be slow, but what it is asked for comes in the end.
PATIENT: dict[str, Any] = {"predict_seconds": LONG_SECONDS, "predict_load_seconds": LONG_SECONDS}

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T],
    what: str = "what the test waits for",
    seconds: float = LONG_SECONDS,
    *,
    pause: float = _PAUSE_SECONDS,
    details: Callable[[], str] = str,
) -> T:
    """The first true value of the condition; `details` are shown if there was none in time."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {seconds:.0f} s\n{details()}")
        time.sleep(pause)
    return found


def join(*threads: threading.Thread) -> None:
    """Waits until they have ended."""
    for thread in threads:
        thread.join(LONG_SECONDS)
        assert not thread.is_alive(), f"{thread.name}: not ended within {LONG_SECONDS:.0f} s"


def has_ended(process: psutil.Process) -> bool:
    """Also if its parent has not waited for it."""
    try:
        return bool(process.status() == psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return True


def wait_for_ends(processes: Iterable[psutil.Process]) -> None:
    """Of processes that this one or others have started."""
    family = list(processes)
    wait_until(lambda: all(map(has_ended, family)), f"{family} have ended")


def end(process: "subprocess.Popen[bytes] | psutil.Popen") -> None:
    """Terminates it, and kills it if it does not end."""
    process.terminate()
    try:
        process.wait(LONG_SECONDS)
    finally:
        process.kill()
        process.wait()


def as_variables(settings: dict[str, object]) -> dict[str, str]:
    """Settings as the environment of another process."""
    return {f"TEMI_{name.upper()}": str(value) for name, value in settings.items()}
