"""Runs a function on items in threads, a bounded number ahead, with results in order."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetch(
    function: Callable[[Item], Result], items: Iterable[Item], *, threads: int
) -> Generator[Result, None, None]:
    """Like `map`, but parallel. Memory holds at most four items per thread."""
    window: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="prefetch") as pool:
        try:
            for item in items:
                window.append(pool.submit(function, item))
                if len(window) >= 4 * threads:
                    yield window.popleft().result()
            while window:
                yield window.popleft().result()
        finally:
            for future in window:
                future.cancel()


class BytesAhead:
    """Blocks the reader of items while those that wait for processing take too many bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self.waiting = 0  # bytes
        self._changed = threading.Condition()

    def admitted(self, item: Item, size: int) -> Item:
        """Returns the item once it fits within the limit, or nothing else waits."""
        with self._changed:
            self._changed.wait_for(lambda: not self.waiting or self.waiting + size <= self._limit)
            self.waiting += size
        return item

    @contextmanager
    def released(self, size: int) -> Iterator[None]:
        """Releases the bytes of an item when the block ends."""
        try:
            yield
        finally:
            with self._changed:
                self.waiting -= size
                self._changed.notify_all()
