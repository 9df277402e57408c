"""A stop signal sets the event and still reaches the previous handler."""

import os
import signal
import threading

import pytest

from app.api.http.shutdown import notice_stop
from tests.waiting import LONG_SECONDS, wait_until


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_set_the_event(number: signal.Signals) -> None:
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


def test_signals_are_ignored_in_another_thread() -> None:
    before = signal.getsignal(signal.SIGTERM)

    def run() -> None:
        with notice_stop(threading.Event()):
            assert signal.getsignal(signal.SIGTERM) is before

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert signal.getsignal(signal.SIGTERM) is before
