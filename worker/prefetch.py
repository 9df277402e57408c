"""Run a function on items in threads, a bounded number ahead, results in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def prefetch(
    function: Callable[[Item], Result], items: Iterable[Item], *, threads: int
) -> Iterator[Result]:
    """Like `map`, but parallel. Memory holds at most four items a thread."""
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
