"""Checks of something that may hang, with at most one thread per check."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Result = TypeVar("Result")


@dataclass(frozen=True)
class CheckResult:
    """With the status `warning` the service still works."""

    status: Literal["ok", "warning", "starting", "failed", "unknown"]
    seconds: float
    detail: str | None = None
    hint: str | None = None  # what to do about it

    @property
    def ok(self) -> bool:
        return self.status in ("ok", "warning")


class PendingProbe(Future[Result]):
    """The result of a running check, and when it was started."""

    def __init__(self) -> None:
        super().__init__()
        self.started = time.monotonic()
        self.set_running_or_notify_cancel()  # it cannot be cancelled


class Probe(Generic[Result]):
    """Runs a check in its own thread, one at a time.

    While a check hangs, `start` returns that same check, so a server that is frozen for an hour
    costs one thread and one connection. The threads are daemons and do not keep the process alive.
    """

    def __init__(self, check: Callable[[], Result]) -> None:
        self._check = check
        self._lock = threading.Lock()
        self._pending: PendingProbe[Result] | None = None

    def start(self) -> PendingProbe[Result]:
        with self._lock:
            if self._pending is not None and not self._pending.done():
                return self._pending
            self._pending = pending = PendingProbe[Result]()
        threading.Thread(target=self._run, args=(pending,), name="probe", daemon=True).start()
        return pending

    def _run(self, pending: PendingProbe[Result]) -> None:
        try:
            result = self._check()
        except Exception as error:  # noqa: BLE001 - `result()` raises it
            pending.set_exception(error)
        else:
            pending.set_result(result)
