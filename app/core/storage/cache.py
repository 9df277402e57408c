"""Copies of files on this machine's disk, shared by its processes; the least used make room."""

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

from app.core.platform.errors import StorageFull

PIN_SECONDS = 60.0  # a path that was handed out is opened within this time
_SLACK = 50  # the folder is counted after every 50th of the limit that was added
_FULL_ENOUGH = 0.9
_UNLINKED_AT_ONCE = 100
_TURNS = 4096  # files that are locked while something is fetched


class _Copy(NamedTuple):
    used: float
    size: int
    path: Path


class Cache:
    """Files by name. A name stands for the same bytes forever.

    An open or mapped file stays readable when it is unlinked. One that was handed out in the last
    minute is not unlinked, so that it can be opened.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._files, self._turns = folder / "files", folder / "turns"
        self.aside = folder / "tmp"
        for place in (self._files, self._turns, self.aside):
            place.mkdir(parents=True, exist_ok=True)
        self._lock_path = folder / "lock"
        self._limit = limit
        self._added = limit  # so that the first that is added counts what others have left
        self._adding = threading.Lock()

    def get(self, name: str, fetch: Callable[[Path], None]) -> Path:
        """The file, after `fetch` has written it if need be: once, however many ask for it."""
        if found := self._hand_out(name):
            return found
        with self._turn(name):
            if found := self._hand_out(name):
                return found
            aside = self.aside / uuid4().hex
            try:
                self._fetch(fetch, aside)
                return self.adopt(aside, name)
            finally:
                aside.unlink(missing_ok=True)

    def _fetch(self, fetch: Callable[[Path], None], aside: Path) -> None:
        try:
            fetch(aside)
        except StorageFull:  # the disk is smaller than the limit, or others use it, too
            aside.unlink(missing_ok=True)
            self._unlink_some(sorted(self._copies()), self._limit)
            fetch(aside)

    def adopt(self, path: Path, name: str) -> Path:
        """Move a whole file in; it must lie on the same disk."""
        size, final = path.stat().st_size, self._place(name)
        final.parent.mkdir(exist_ok=True)
        os.utime(path)
        path.replace(final)
        self._make_room(size)
        return final

    def forget(self, name: str) -> None:
        self._place(name).unlink(missing_ok=True)

    def _place(self, name: str) -> Path:
        return self._files / name[:2] / name

    def _hand_out(self, name: str) -> Path | None:
        path = self._place(name)
        with self._locked(self._lock_path, fcntl.LOCK_SH):
            try:
                os.utime(path)  # used just now: nobody unlinks it
            except FileNotFoundError:
                return None
        return path

    def _make_room(self, added: int) -> None:
        with self._adding:
            self._added += added
            if self._added < self._limit / _SLACK:
                return
            self._added = 0
        copies = sorted(self._copies())
        too_much = sum(copy.size for copy in copies) - self._limit
        if too_much > 0:
            self._unlink_some(copies, too_much + int(self._limit * (1 - _FULL_ENOUGH)))

    def _unlink_some(self, copies: list[_Copy], too_much: int) -> None:
        for start in range(0, len(copies), _UNLINKED_AT_ONCE):
            with self._locked(self._lock_path, fcntl.LOCK_EX):
                for copy in copies[start : start + _UNLINKED_AT_ONCE]:
                    if too_much <= 0:
                        return
                    if _is_unused(copy.path):
                        copy.path.unlink(missing_ok=True)
                        too_much -= copy.size

    def _copies(self) -> Iterator[_Copy]:
        for folder in os.scandir(self._files):
            for entry in os.scandir(folder):
                try:
                    found = entry.stat()
                except FileNotFoundError:  # another process makes room, too
                    continue
                yield _Copy(found.st_mtime, found.st_size, Path(entry.path))

    @contextmanager
    def _turn(self, name: str) -> Iterator[None]:
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % _TURNS
        with self._locked(self._turns / f"{number:04d}", fcntl.LOCK_EX):
            yield

    @staticmethod
    @contextmanager
    def _locked(path: Path, how: int) -> Iterator[None]:
        """Among threads and processes: each opens the file for itself."""
        with path.open("ab") as file:
            fcntl.flock(file, how)
            yield


def _is_unused(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - PIN_SECONDS
    except FileNotFoundError:
        return True
