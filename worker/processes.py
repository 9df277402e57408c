"""The processes that a worker watches over."""

import multiprocessing
import os
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any


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
