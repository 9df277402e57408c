"""The watchdog calls back once after a timeout."""

import threading
import time

from tests.waiting import LONG_SECONDS
from worker.supervision.watchdog import Watchdog


def test_without_a_reset_it_calls_back_once() -> None:
    calls: list[float] = []
    called = threading.Event()

    def on_timeout() -> None:
        calls.append(time.monotonic())
        called.set()

    started = time.monotonic()
    with Watchdog(0.2, on_timeout) as watchdog:
        assert called.wait(LONG_SECONDS)
        time.sleep(0.5)
        assert watchdog.timed_out
    assert len(calls) == 1
    assert calls[0] - started >= 0.2


def test_with_resets_it_does_not() -> None:
    calls: list[str] = []
    with Watchdog(LONG_SECONDS, lambda: calls.append("timeout")) as watchdog:
        for _ in range(20):
            time.sleep(0.01)
            watchdog.reset()
    assert not watchdog.timed_out
    assert calls == []


def test_after_its_exit_it_does_not() -> None:
    calls: list[str] = []
    with Watchdog(LONG_SECONDS, lambda: calls.append("timeout")) as watchdog:
        pass
    assert not watchdog._thread.is_alive()
    assert calls == []
