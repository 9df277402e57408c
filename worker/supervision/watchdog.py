"""Kills a job's process in time even if its supervisor hangs in a call to the database."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Watchdog:
    """Calls `on_timeout` if `reset` was not called for `seconds`; a context manager."""

    def __init__(self, seconds: float, on_timeout: Callable[[], None]) -> None:
        self._seconds = seconds
        self._on_timeout = on_timeout
        self._reset_at = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self.timed_out = False

    def reset(self) -> None:
        self._reset_at = time.monotonic()

    def _watch(self) -> None:
        while not self._closed.wait(max(0.01, self._seconds - self._idle_seconds)):
            if self._idle_seconds >= self._seconds:
                self.timed_out = True
                self._on_timeout()
                return

    @property
    def _idle_seconds(self) -> float:
        return time.monotonic() - self._reset_at

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._closed.set()
        self._thread.join()
