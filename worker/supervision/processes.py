"""Child processes of a worker: how they are started and killed, and how they end in an outage."""

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import structlog
from sqlalchemy.exc import OperationalError
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from app.core.platform.db import is_gone
from app.core.platform.errors import StorageUnavailable
from app.core.platform.settings import Settings
from app.core.platform.starting import pack_call, run_packed
from temi.cores import limit_cores

OUTAGE_EXIT_CODE = 75  # the process could go on if database and storage were reachable
log = structlog.get_logger()


def start(
    target: Callable[..., None], *arguments: Any, name: str
) -> tuple[BaseProcess, Connection]:
    """Starts a process; returns it and the pipe with its messages.

    The process gets the other end of the pipe and our pid as its last arguments.
    """
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=run_packed,
        args=(pack_call(target, *arguments), theirs, os.getpid()),
        name=name,
    )
    process.start()
    theirs.close()
    return process, ours


def kill(process: BaseProcess) -> None:
    if process.is_alive():
        process.kill()
    process.join()


def locked_send(connection: Connection) -> Callable[[object], None]:
    """Returns a `send` for several threads, whose messages must not mix."""
    lock = threading.Lock()

    def send(message: object) -> None:
        with lock:
            connection.send(message)

    return send


def limit_threads(settings: Settings) -> None:
    """In a child, once its libraries are loaded: uses as many cores as the settings say."""
    limit_cores(settings.threads)
    threadpool_limits(settings.threads)


def exit_if_outage(error: Exception) -> None:
    """In a child: exits with a code that counts as no crash, so the work is tried again."""
    if isinstance(error, OperationalError) and is_gone(error):
        log.warning("database_unavailable", reason=str(error.orig))
        sys.exit(OUTAGE_EXIT_CODE)
    if isinstance(error, StorageUnavailable):
        log.warning("storage_unavailable", reason=error.detail)
        sys.exit(OUTAGE_EXIT_CODE)
