"""Ends a job's process in time even if whoever watches over it hangs in a call to the database."""

import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Watchdog:
    """Calls `bite` once nobody has fed it for `seconds`; used as a context manager."""

    def __init__(self, seconds: float, bite: Callable[[], None]) -> None:
        self._seconds = seconds
        self._bite = bite
        self._fed_at = time.monotonic()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)
        self.has_bitten = False

    def feed(self) -> None:
        self._fed_at = time.monotonic()

    def _watch(self) -> None:
        while not self._closed.wait(max(0.01, self._seconds - self._hungry_for)):
            if self._hungry_for >= self._seconds:
                self.has_bitten = True
                self._bite()
                return

    @property
    def _hungry_for(self) -> float:
        return time.monotonic() - self._fed_at

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
