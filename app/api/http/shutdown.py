"""The end of a process that is told to stop: requests in flight are answered, streams end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def notice_stop(stopping: threading.Event) -> Iterator[None]:
    """Sets the event when the server is told to stop.

    The server tells the application only after the last answer was sent, and an answer that goes
    on until a job ends would keep it waiting: so we listen to the same signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only there can signals be listened to; a test's client stops us otherwise
        return
    theirs: dict[int, Any] = {}

    def note(number: int, frame: FrameType | None) -> None:
        stopping.set()
        if callable(theirs[number]):
            theirs[number](number, frame)

    for number in _STOP_SIGNALS:
        theirs[number] = signal.getsignal(number)
        signal.signal(number, note)
    try:
        yield
    finally:
        for number in _STOP_SIGNALS:
            signal.signal(number, theirs[number])
