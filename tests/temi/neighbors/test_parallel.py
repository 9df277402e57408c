import threading
import time

import faiss
import pytest

from temi.neighbors.parallel import Tally, even_slices, run_pieces
from tests.waiting import LONG_SECONDS


def test_every_piece_once_and_progress_on_the_calling_thread() -> None:
    seen: list[int] = []
    reports: list[tuple[int, int]] = []
    callers: set[int] = set()

    def report(done: int, total: int) -> None:
        reports.append((done, total))
        callers.add(threading.get_ident())

    tally = Tally(10, report)

    def work(piece: int) -> None:
        seen.append(piece)
        tally.add(2)

    run_pieces(work, range(5), tally)

    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert reports[-1] == (10, 10)
    assert callers == {threading.get_ident()}


def test_the_error_of_a_piece_stops_the_others() -> None:
    tally = Tally(1000, None)
    finished: list[int] = []

    def work(piece: int) -> None:
        if piece == 0:
            raise ValueError("no good")
        time.sleep(0.01)
        tally.add(1)
        finished.append(piece)

    with pytest.raises(ValueError, match="no good"):
        run_pieces(work, range(1000), tally)
    assert len(finished) < 900


def _meet() -> None:
    """Ends only if three pieces are worked on at the same time."""
    meeting = threading.Barrier(3, timeout=LONG_SECONDS)

    def work(_piece: int) -> None:
        meeting.wait()

    run_pieces(work, range(3), Tally(3, None))


def test_as_many_threads_at_once_as_faiss_would_use() -> None:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(3)
    try:
        for _ in range(2):  # the first run must not take threads from the second
            _meet()
    finally:
        faiss.omp_set_num_threads(before)


@pytest.mark.parametrize(("n", "longest"), [(1, 5), (5, 5), (17, 4), (1000, 7)])
def test_even_slices_cover_everything(n: int, longest: int) -> None:
    slices = even_slices(n, longest)

    assert [i for part in slices for i in range(n)[part]] == list(range(n))
    assert max(part.stop - part.start for part in slices) <= longest
