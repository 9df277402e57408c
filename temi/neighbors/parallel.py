"""Runs tasks in threads that use one core each, and counts their progress."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TypeVar

import faiss
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Item = TypeVar("Item")
Progress = Callable[[int, int], None]
"""Called with the number of rows that are done and the total."""

_REPORT_SECONDS = 0.2
_SLICES = 8


class ProgressCounter:
    """Counts finished rows from many threads; after ``stop``, ``add`` raises in those threads."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total = total
        self._progress = progress
        self._lock = threading.Lock()
        self._done = 0.0
        self._reported = -1.0
        self._stopped = False

    def add(self, rows: float) -> None:
        if self._stopped:
            raise InterruptedError("the search was stopped")
        with self._lock:
            self._done += rows

    def report(self) -> None:
        """Call ``progress`` if the count has changed: a job without new reports has stalled."""
        if self._progress is not None and self._done != self._reported:
            self._reported = self._done
            self._progress(min(round(self._done), self.total), self.total)

    def stop(self) -> None:
        self._stopped = True


def run_in_threads(
    task: Callable[[Item], None], items: Sequence[Item], counter: ProgressCounter
) -> None:
    """Call ``task`` on every item; progress is reported from the calling thread.

    Threads with one core each never wait for each other inside a matrix product. If other
    programs use the cores too, a product that waits for its slowest thread is far slower.
    """
    threads = thread_count()  # read before the limit, which also applies to OpenMP
    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(threads, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool,
    ):
        pending = {pool.submit(task, item) for item in items}
        try:
            while pending:
                done, pending = wait(pending, _REPORT_SECONDS, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                counter.report()
        except BaseException:
            counter.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def even_slices(n: int, longest: int) -> list[slice]:
    """Return slices of similar length; their number is a multiple of eight, to keep threads busy.

    It is not a multiple of this machine's threads: the slices determine how products round.
    """
    count = -(-n // (longest * _SLICES)) * _SLICES
    edges = [n * part // min(count, n) for part in range(min(count, n) + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def thread_count() -> int:
    return int(faiss.omp_get_max_threads())
