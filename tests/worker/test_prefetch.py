import threading
import time
from collections.abc import Iterator

import pytest

from worker.prefetch import prefetch


def test_results_come_in_order_though_work_is_parallel() -> None:
    def slow_for_small(number: int) -> int:
        time.sleep(0.02 if number % 2 == 0 else 0.0)
        return number * 10

    assert list(prefetch(slow_for_small, range(20), threads=4)) == [n * 10 for n in range(20)]


def test_takes_only_a_bounded_number_of_items_ahead() -> None:
    taken = []
    before = threading.active_count()

    def items() -> Iterator[int]:
        for number in range(1000):
            taken.append(number)
            yield number

    results = prefetch(lambda number: number, items(), threads=2)
    next(results)
    assert len(taken) <= 8
    results.close()  # type: ignore[attr-defined]
    assert threading.active_count() <= before


def test_an_error_reaches_the_caller() -> None:
    def fail(number: int) -> int:
        if number == 3:
            raise ValueError("three")
        return number

    with pytest.raises(ValueError, match="three"):
        list(prefetch(fail, range(10), threads=2))
