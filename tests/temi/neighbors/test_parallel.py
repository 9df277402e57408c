import threading
import time

import faiss
import pytest

from temi.neighbors.parallel import ProgressCounter, even_slices, run_in_threads
from tests.waiting import LONG_SECONDS


def test_every_item_once_and_progress_on_the_calling_thread() -> None:
    seen: list[int] = []
    reports: list[tuple[int, int]] = []
    callers: set[int] = set()

    def report(done: int, total: int) -> None:
        reports.append((done, total))
        callers.add(threading.get_ident())

    counter = ProgressCounter(10, report)

    def task(item: int) -> None:
        seen.append(item)
        counter.add(2)

    run_in_threads(task, range(5), counter)

    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert reports[-1] == (10, 10)
    assert callers == {threading.get_ident()}


def test_an_error_stops_the_other_tasks() -> None:
    counter = ProgressCounter(1000, None)
    finished: list[int] = []

    def task(item: int) -> None:
        if item == 0:
            raise ValueError("invalid item")
        time.sleep(0.01)
        counter.add(1)
        finished.append(item)

    with pytest.raises(ValueError, match="invalid item"):
        run_in_threads(task, range(1000), counter)
    assert len(finished) < 900


def _run_three_at_once() -> None:
    """Return only if three tasks run at the same time."""
    barrier = threading.Barrier(3, timeout=LONG_SECONDS)

    def task(_item: int) -> None:
        barrier.wait()

    run_in_threads(task, range(3), ProgressCounter(3, None))


def test_as_many_threads_at_once_as_faiss_would_use() -> None:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        for _ in range(2):  # the first run must not take threads from the second
            _run_three_at_once()
    finally:
        faiss.omp_set_num_threads(before)


@pytest.mark.parametrize(("n", "longest"), [(1, 5), (5, 5), (17, 4), (1000, 7)])
def test_even_slices_cover_everything(n: int, longest: int) -> None:
    slices = even_slices(n, longest)

    assert [i for part in slices for i in range(n)[part]] == list(range(n))
    assert max(part.stop - part.start for part in slices) <= longest
