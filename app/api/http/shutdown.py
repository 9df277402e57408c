"""Graceful shutdown: requests in flight are completed, event streams end."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def notice_stop(stopping: threading.Event) -> Iterator[None]:
    """Sets the event on SIGINT or SIGTERM.

    The server notifies the application only after the last response. An event stream that lasts as
    long as a job would delay that, so the same signals are handled here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # signal handlers work in the main thread only; tests run in another one
        return
    previous: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        stopping.set()
        if callable(previous[number]):
            previous[number](number, frame)

    for number in _STOP_SIGNALS:
        previous[number] = signal.getsignal(number)
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number in _STOP_SIGNALS:
            signal.signal(number, previous[number])
