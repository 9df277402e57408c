"""Work that several threads request at the same time is done once."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Result = TypeVar("Result")


class SingleFlight(Generic[Result]):
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[str, Future[Result]] = {}

    def run(self, key: str, work: Callable[[], Result]) -> Result:
        """Runs the work, or waits for a call with the same key that runs already."""
        with self._lock:
            running = self._running.get(key)
            if running is None:
                mine = self._running[key] = Future()
        if running is not None:
            return running.result()
        try:
            result = work()
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(result)
            return result
        finally:
            with self._lock:
                del self._running[key]
