"""Work on pieces in threads that each use one core."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import pairwise
from typing import TypeVar

import faiss
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

Piece = TypeVar("Piece")
Progress = Callable[[int, int], None]

_SECONDS_A_REPORT = 0.2
_SLICES = 8


class Tally:
    """Counts rows from many threads; one that shall stop learns it when it counts."""

    def __init__(self, total: int, progress: Progress | None) -> None:
        self.total = total
        self._progress = progress
        self._lock = threading.Lock()
        self._done = 0.0
        self._reported = -1.0
        self._stopped = False

    def add(self, rows: float) -> None:
        if self._stopped:
            raise InterruptedError("the search was given up")
        with self._lock:
            self._done += rows

    def report(self) -> None:
        """Silent unless something was done since: a report counts as progress."""
        if self._progress is not None and self._done != self._reported:
            self._reported = self._done
            self._progress(min(round(self._done), self.total), self.total)

    def stop(self) -> None:
        self._stopped = True


def run_pieces(work: Callable[[Piece], None], pieces: Sequence[Piece], tally: Tally) -> None:
    """Call ``work`` on every piece; progress is told from the calling thread.

    Threads of one core each never wait for one another inside a matrix product. Where other
    programs want the cores too, a product that waits for its slowest thread is far slower.
    """
    threads = thread_count()  # asked before the limit, which counts for OpenMP as well
    with (
        threadpool_limits(limits=1, user_api="blas"),
        ThreadPoolExecutor(threads, initializer=faiss.omp_set_num_threads, initargs=(1,)) as pool,
    ):
        waiting = {pool.submit(work, piece) for piece in pieces}
        try:
            while waiting:
                done, waiting = wait(waiting, _SECONDS_A_REPORT, FIRST_EXCEPTION)
                for future in done:
                    future.result()
                tally.report()
        except BaseException:
            tally.stop()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def even_slices(n: int, longest: int) -> list[slice]:
    """Slices of about one length, a multiple of eight: most often no thread rests at the end.

    Not a multiple of this machine's threads: how rows are cut decides how products round.
    """
    count = -(-n // (longest * _SLICES)) * _SLICES
    edges = [n * part // min(count, n) for part in range(min(count, n) + 1)]
    return [slice(start, stop) for start, stop in pairwise(edges)]


def thread_count() -> int:
    return int(faiss.omp_get_max_threads())
