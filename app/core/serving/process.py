"""The process that computes. Torch brings about a gigabyte and holds the interpreter for long
stretches: the API stays small and quick without it."""

import os
import socket
import threading
import time
from collections.abc import Iterator

from app.core.platform.logs import adopt_libraries, configure_logging
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings
from app.core.serving.ipc import pack, receive
from app.core.serving.messages import FromProcess, ToProcess
from app.core.serving.predictor import Predictor

_LOOK_SECONDS = 1.0


def main(settings: Settings, connection: socket.socket, parent_pid: int) -> None:
    """Until the API hangs up, or there has been nothing to do for a long time."""
    die_with_parent(parent_pid)
    configure_logging(settings)
    lock = threading.Lock()

    def send(*messages: FromProcess) -> None:
        with lock:
            connection.sendall(pack(messages))

    engine = Predictor(settings, send)
    adopt_libraries()  # torch came with it
    threading.Thread(target=_end_when_idle, args=(engine,), daemon=True).start()
    messages, reading = receive(connection), threading.Lock()
    other = threading.Thread(target=_take_all, args=(messages, reading, engine), daemon=True)
    other.start()
    _take_all(messages, reading, engine)


def _take_all(messages: Iterator[ToProcess], reading: threading.Lock, engine: Predictor) -> None:
    """Two threads do this: while one works on what it read, the other one reads on."""
    while True:
        with reading:
            try:
                message = next(messages)
            except (StopIteration, OSError):
                return  # the API has gone
        engine.take(message, may_work=True)


def _end_when_idle(engine: Predictor) -> None:
    """What comes in at that very moment is sent again, to the next process."""
    while not engine.is_idle:
        time.sleep(_LOOK_SECONDS)
    os._exit(0)
