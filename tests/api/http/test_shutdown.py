"""A process that is told to stop notices it, and those who listened before do as well."""

import os
import signal
import threading

import pytest

from app.api.http.shutdown import notice_stop
from tests.waiting import LONG_SECONDS, wait_until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_order_to_stop(number: signal.Signals) -> None:
    theirs: list[int] = []
    before = signal.signal(number, lambda got, _frame: theirs.append(got))
    try:
        stopping = threading.Event()
        with notice_stop(stopping):
            os.kill(os.getpid(), number)
            assert stopping.wait(LONG_SECONDS)
        wait_until(lambda: theirs, "they are told as well")
        os.kill(os.getpid(), number)  # theirs again
        wait_until(lambda: len(theirs) >= 2, "they are told again")
        assert theirs == [number, number]
    finally:
        signal.signal(number, before)


def test_in_another_thread_nothing_can_be_noticed() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def run() -> None:
        with notice_stop(threading.Event()):
            assert signal.getsignal(signal.SIGTERM) is before

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
