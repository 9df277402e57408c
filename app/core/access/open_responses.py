"""How many long answers a key may have open at once in this process."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.platform.errors import RateLimited

_RETRY_SECONDS = 5


class OpenResponses:
    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._most = most
        self._open: Counter[str] = Counter()
        self._lock = threading.Lock()

    @contextmanager
    def hold(self, owner: str) -> Iterator[None]:
        """For as long as the answer is open; RateLimited if the owner has too many already."""
        with self._lock:
            if self._open[owner] >= self._most:
                raise RateLimited(
                    f"{self._most} {self._what} of this key are open already, and more are not "
                    "allowed at once. Close some, or wait until they have ended.",
                    retry_after=_RETRY_SECONDS,
                )
            self._open[owner] += 1
        try:
            yield
        finally:
            with self._lock:
                self._open[owner] -= 1
                if not self._open[owner]:
                    del self._open[owner]
