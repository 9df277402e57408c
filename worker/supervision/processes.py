"""The processes that a worker watches over."""

import multiprocessing
import os
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import structlog
from sqlalchemy.exc import OperationalError

from app.core.platform.db import is_gone
from app.core.platform.errors import StorageUnavailable

OUTAGE = 75  # the exit code of one that could go on if only database and storage were there
log = structlog.get_logger()


def start(
    target: Callable[..., None], *arguments: Any, name: str
) -> tuple[BaseProcess, Connection]:
    """The process, and what it says; it is given the other end and our pid as last arguments."""
    context = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=target, args=(*arguments, theirs, os.getpid()), name=name)
    process.start()
    theirs.close()
    return process, ours


def end(process: BaseProcess) -> None:
    if process.is_alive():
        process.kill()
    process.join()


def exit_if_outage(error: Exception) -> None:
    """From within such a process: nobody is to blame, and another attempt may be luckier."""
    if isinstance(error, OperationalError) and is_gone(error):
        log.warning("database_gone", reason=str(error.orig))
        sys.exit(OUTAGE)
    if isinstance(error, StorageUnavailable):
        log.warning("storage_gone", reason=error.detail)
        sys.exit(OUTAGE)
