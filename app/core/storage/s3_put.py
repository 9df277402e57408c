"""Sending to a bucket: concurrent puts, and files that report activity while they are sent."""

import io
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from app.core.platform.activity import report_activity
from app.core.platform.settings import MiB

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_CONCURRENT_PUTS = 16
_MAX_PENDING_BYTES = 64 * MiB


class PutBatch:
    """Concurrent puts with bounded memory. An error of one is raised by all later calls."""

    def __init__(self, put: Callable[[str, bytes], None]) -> None:
        self._put = put
        self._pool = ThreadPoolExecutor(_CONCURRENT_PUTS, thread_name_prefix="put")
        self._pending: deque[tuple[Future[None], int]] = deque()
        self._bytes = 0
        self._lock = threading.Lock()

    def write(self, key: str, data: bytes) -> None:
        with self._lock:
            self._pending.append((self._pool.submit(self._put, key, data), len(data)))
            self._bytes += len(data)
        self._wait(_MAX_PENDING_BYTES)

    def flush(self) -> None:
        """Returns when all that was written before the call is stored under its key."""
        self._wait(-1)

    def discard(self) -> None:
        """Cancels puts that have not started; the collector deletes the others."""
        for future, _ in list(self._pending):
            future.cancel()

    def _wait(self, max_bytes: int) -> None:
        """Waits for the oldest puts until at most this many bytes are pending."""
        while True:
            with self._lock:
                if not self._pending or self._bytes <= max_bytes:
                    return
                oldest = self._pending[0]
            oldest[0].result()
            with self._lock:
                if self._pending and self._pending[0] is oldest:
                    self._pending.popleft()
                    self._bytes -= oldest[1]


class ReportingFile(io.FileIO):
    """Reports activity with each read: an upload reads the next part when one was sent."""

    # The annotations of FileIO allow None, which only a non-blocking file returns.
    def read(self, size: int | None = -1, /) -> bytes:
        report_activity()
        return super().read(size) or b""

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        report_activity()
        return super().readinto(buffer) or 0


class ReportingBytes(io.BytesIO):
    """The same for bytes in memory."""

    def read(self, size: int | None = -1, /) -> bytes:
        report_activity()
        return super().read(size)
