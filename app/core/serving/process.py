"""The prediction process. Computing holds the interpreter lock for long stretches: without it the
API stays responsive. On a CPU it does not load torch, which takes about a gigabyte."""

import os
import socket
import sys
import threading
import time
from collections.abc import Iterator

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from app.core.platform.logs import adopt_libraries, configure_logging
from app.core.platform.processes import die_with_parent
from app.core.platform.settings import Settings
from app.core.serving.ipc import pack, receive
from app.core.serving.messages import FromProcess, ToProcess
from app.core.serving.predictor import Predictor

_IDLE_CHECK_SECONDS = 1.0


def main() -> None:
    """Command line: socket, pid of the parent. The first message is the settings.

    Runs until the API closes the connection, or until the process has been idle for long.
    """
    connection = socket.socket(fileno=int(sys.argv[1]))
    die_with_parent(int(sys.argv[2]))
    messages = receive(connection)
    settings: Settings = next(messages)
    configure_logging(settings)
    lock = threading.Lock()

    def send(*messages: FromProcess) -> None:
        with lock:
            connection.sendall(pack(messages))

    predictor = Predictor(settings, send)
    adopt_libraries()
    threadpool_limits(1, "blas")  # several images and batches are computed at once
    threading.Thread(target=_exit_when_idle, args=(predictor,), daemon=True).start()
    lock_reader = threading.Lock()
    other = threading.Thread(
        target=_handle_all, args=(messages, lock_reader, predictor), daemon=True
    )
    other.start()
    _handle_all(messages, lock_reader, predictor)


def _handle_all(
    messages: Iterator[ToProcess], lock_reader: threading.Lock, predictor: Predictor
) -> None:
    """Runs in two threads: while one handles a message, the other reads the next."""
    while True:
        with lock_reader:
            try:
                message = next(messages)
            except (StopIteration, OSError):
                return  # the API has closed the connection
        predictor.handle(message, run_inline=True)


def _exit_when_idle(predictor: Predictor) -> None:
    """A message that arrives at the moment of the exit is sent again, to the next process."""
    while not predictor.is_idle:
        time.sleep(_IDLE_CHECK_SECONDS)
    os._exit(0)
