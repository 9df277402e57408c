import threading
import time
from collections.abc import Iterator

import pytest

from worker.stages.prefetch import BytesAhead, prefetch


def test_results_come_in_order_though_work_is_parallel() -> None:
    def slow_for_small(number: int) -> int:
        time.sleep(0.02 if number % 2 == 0 else 0.0)
        return number * 10

    assert list(prefetch(slow_for_small, range(20), threads=4)) == [n * 10 for n in range(20)]


def test_only_a_bounded_number_of_items_is_read_ahead() -> None:
    taken = []
    before = threading.active_count()

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = prefetch(lambda number: number, items(), threads=2)
    next(results)
    assert len(taken) <= 8
    results.close()
    assert threading.active_count() <= before


def test_an_error_reaches_the_caller() -> None:
    def fail(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError, match="three"):
        list(prefetch(fail, range(10), threads=2))


def test_large_items_wait_for_earlier_ones() -> None:
    ahead, may_end = BytesAhead(10), threading.Event()
    most, taken = 0, 0

    def items() -> Iterator[int]:
        nonlocal taken
        for size in (6, 6, 4, 30, 1):
            taken += 1
            yield ahead.admitted(size, size)

    def use(size: int) -> int:
        nonlocal most
        with ahead.released(size):
            most = max(most, ahead.waiting)
            may_end.wait(60)
            return size

    threading.Timer(0.2, may_end.set).start()
    assert list(prefetch(use, items(), threads=2)) == [6, 6, 4, 30, 1]
    assert most <= 30  # an item above the limit is admitted alone
    assert (taken, ahead.waiting) == (5, 0)


def test_bytes_are_released_after_an_error() -> None:
    ahead = BytesAhead(10)
    ahead.admitted("item", 10)
    with pytest.raises(ValueError, match="broken"), ahead.released(10):
        raise ValueError("broken")
    assert ahead.admitted("next", 10) == "next"
