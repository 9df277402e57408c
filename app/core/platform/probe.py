"""Look at something that may hang, without hanging."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Seen = TypeVar("Seen")


@dataclass(frozen=True)
class CheckResult:
    """A `warning` is worth a look, but the service does its work."""

    status: Literal["ok", "warning", "starting", "failed", "unknown"]
    seconds: float
    detail: str | None = None
    hint: str | None = None  # what to do about it

    @property
    def ok(self) -> bool:
        return self.status in ("ok", "warning")


class PendingProbe(Future[Seen]):
    """What will have been seen, and when somebody began to look."""

    def __init__(self) -> None:
        super().__init__()
        self.started = time.monotonic()
        self.set_running_or_notify_cancel()  # whoever stops waiting for it does not stop it


class Probe(Generic[Seen]):
    """Looks in a thread of its own, one look at a time.

    Whoever asks while a look still hangs is given that same look, so a server that is frozen for
    an hour costs one thread and one connection, however often somebody asks. The threads are
    daemons: none of them keeps the process from ending.
    """

    def __init__(self, look: Callable[[], Seen]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._pending: PendingProbe[Seen] | None = None

    def start(self) -> PendingProbe[Seen]:
        with self._lock:
            if self._pending is not None and not self._pending.done():
                return self._pending
            self._pending = look = PendingProbe[Seen]()
        threading.Thread(target=self._run, args=(look,), name="probe", daemon=True).start()
        return look

    def _run(self, look: PendingProbe[Seen]) -> None:
        try:
            seen = self._look()
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            look.set_exception(error)
        else:
            look.set_result(seen)
