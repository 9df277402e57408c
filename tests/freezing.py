"""Stops processes of a service on SQLite without blocking the others."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psutil

from tests.waiting import wait_until


def suspend_between_writes(processes: Sequence[psutil.Process], file: Path) -> None:
    """A process that is stopped during a write keeps the file locked until it continues."""

    def suspended() -> bool:
        for process in processes:
            process.suspend()
        if not is_locked(file):
            return True
        for process in processes:
            process.resume()
        return False

    wait_until(suspended, "the processes are stopped between two writes", pause=0.1)


def is_locked(file: Path) -> bool:
    with closing(sqlite3.connect(file, timeout=2.0)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return True
    return False
