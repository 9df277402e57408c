"""Many small files to a server that takes its time for each."""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from app.core.platform.settings import MiB

_PUTS_AT_ONCE = 16
_MOST_BYTES = 64 * MiB  # that wait in memory to be sent


class PutBatch:
    """Puts side by side, with bounded memory. An error of one is raised by all that follow."""

    def __init__(self, put: Callable[[str, bytes], None]) -> None:
        self._put = put
        self._pool = ThreadPoolExecutor(_PUTS_AT_ONCE, thread_name_prefix="put")
        self._sent: deque[tuple[Future[None], int]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()

    def write(self, key: str, data: bytes) -> None:
        with self._lock:
            self._sent.append((self._pool.submit(self._put, key, data), len(data)))
            self._bytes += len(data)
        self._wait(_MOST_BYTES)

    def keep(self) -> None:
        """All that was written before the call is kept under its key."""
        self._wait(-1)

    def drop(self) -> None:
        """Ends what is being sent; what has arrived is collected as garbage."""
        for future, _ in list(self._sent):
            future.cancel()

    def _wait(self, most: int) -> None:
        while True:
            with self._lock:
                if not self._sent or self._bytes <= most:
                    return
                oldest = self._sent[0]
            oldest[0].result()
            with self._lock:
                if self._sent and self._sent[0] is oldest:
                    self._sent.popleft()
                    self._bytes -= oldest[1]
