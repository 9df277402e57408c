"""The watchdog calls back once after a timeout."""

import threading
import time

from tests.waiting import LONG_SECONDS
from worker.supervision.watchdog import Watchdog


def test_without_a_reset_it_calls_back_once() -> None:
    bites: list[float] = []
    bitten = threading.Event()

    def on_timeout() -> None:
        bites.append(time.monotonic())
        bitten.set()

    started = time.monotonic()
    with Watchdog(0.2, on_timeout) as dog:
        assert bitten.wait(LONG_SECONDS)
        time.sleep(0.5)
        assert dog.timed_out
    assert len(bites) == 1
    assert bites[0] - started >= 0.2


def test_with_resets_it_does_not() -> None:
    bites: list[str] = []
    with Watchdog(LONG_SECONDS, lambda: bites.append("on_timeout")) as dog:
        for _ in range(20):
            time.sleep(0.01)
            dog.reset()
    assert not dog.timed_out
    assert bites == []


def test_after_its_exit_it_does_not() -> None:
    bites: list[str] = []
    with Watchdog(LONG_SECONDS, lambda: bites.append("on_timeout")) as dog:
        pass
    assert not dog._thread.is_alive()
    assert bites == []
