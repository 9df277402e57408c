"""Look at something that may hang, without hanging."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Seen = TypeVar("Seen")


class Lookout(Generic[Seen]):
    """Looks in a thread of its own, one look at a time.

    Whoever asks while a look still hangs is given that same look, so a server that is frozen for
    an hour costs one thread and one connection, however often somebody asks. The threads are
    daemons: none of them keeps the process from ending.
    """

    def __init__(self, look: Callable[[], Seen]) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._pending: Future[Seen] | None = None

    def start(self) -> "Future[Seen]":
        with self._lock:
            if self._pending is not None and not self._pending.done():
                return self._pending
            self._pending = future = Future[Seen]()
        threading.Thread(target=self._run, args=(future,), name="lookout", daemon=True).start()
        return future

    def _run(self, future: "Future[Seen]") -> None:
        try:
            seen = self._look()
        except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
            future.set_exception(error)
        else:
            future.set_result(seen)
