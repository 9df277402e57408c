"""A cache of files on the local disk, shared by all processes; the least recently used go first."""

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

PIN_SECONDS = 60.0  # callers of `get` open the path within this time
_CHECK_SHARE = 0.02  # of the limit: the folder is measured after this much was added
_TARGET_SHARE = 0.9  # of the limit: what stays when files are evicted
_EVICTED_PER_LOCK = 100
_FETCH_LOCKS = 4096


class _Entry(NamedTuple):
    used: float
    size: int
    path: Path


class Cache:
    """Files by name; a name always stands for the same bytes.

    An open or mapped file stays readable after it was evicted. A file that `get` returned in the
    last minute is not evicted, so that the caller can open it.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self._files, self._fetch_locks = folder / "files", folder / "locks"
        self.temporary_dir = folder / "tmp"
        for subfolder in (self._files, self._fetch_locks, self.temporary_dir):
            subfolder.mkdir(parents=True, exist_ok=True)
        self._lock_path = folder / "lock"
        self._limit = limit
        self._added = limit  # measures the folder after the first file: it may hold files already
        self._added_lock = threading.Lock()

    def get(self, name: str, fetch: Callable[[Path], None]) -> Path:
        """The path of the file; if it is missing, `fetch` writes it, once for all who wait."""
        if found := self._find(name):
            return found
        with self._fetch_lock(name):
            if found := self._find(name):
                return found
            temporary = self.temporary_dir / uuid4().hex
            try:
                self._fetch(fetch, temporary)
                return self.adopt(temporary, name)
            finally:
                temporary.unlink(missing_ok=True)

    def _fetch(self, fetch: Callable[[Path], None], target: Path) -> None:
        try:
            fetch(target)
        except StorageFull:  # the disk is smaller than the limit, or has other files, too
            target.unlink(missing_ok=True)
            self._evict(sorted(self._entries()), self._limit)
            fetch(target)

    def adopt(self, path: Path, name: str) -> Path:
        """Moves a whole file into the cache; it must be on the same disk."""
        size, final = path.stat().st_size, self._path(name)
        final.parent.mkdir(exist_ok=True)
        os.utime(path)
        path.replace(final)
        self._evict_over_limit(size)
        return final

    def forget(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._files / name[:2] / name

    def _find(self, name: str) -> Path | None:
        path = self._path(name)
        with self._locked(self._lock_path, fcntl.LOCK_SH):
            try:
                os.utime(path)  # not evicted for the next minute
            except FileNotFoundError:
                return None
        return path

    def _evict_over_limit(self, added: int) -> None:
        with self._added_lock:
            self._added += added
            if self._added < self._limit * _CHECK_SHARE:
                return
            self._added = 0
        entries = sorted(self._entries())
        excess = sum(entry.size for entry in entries) - self._limit
        if excess > 0:
            self._evict(entries, excess + int(self._limit * (1 - _TARGET_SHARE)))

    def _evict(self, entries: list[_Entry], excess: int) -> None:
        for start in range(0, len(entries), _EVICTED_PER_LOCK):
            with self._locked(self._lock_path, fcntl.LOCK_EX):
                for entry in entries[start : start + _EVICTED_PER_LOCK]:
                    if excess <= 0:
                        return
                    if _is_unused(entry.path):
                        entry.path.unlink(missing_ok=True)
                        excess -= entry.size

    def _entries(self) -> Iterator[_Entry]:
        for folder in os.scandir(self._files):
            for entry in os.scandir(folder):
                try:
                    found = entry.stat()
                except FileNotFoundError:  # another process evicts, too
                    continue
                yield _Entry(found.st_mtime, found.st_size, Path(entry.path))

    @contextmanager
    def _fetch_lock(self, name: str) -> Iterator[None]:
        number = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % _FETCH_LOCKS
        with self._locked(self._fetch_locks / f"{number:04d}", fcntl.LOCK_EX):
            yield

    @staticmethod
    @contextmanager
    def _locked(path: Path, mode: int) -> Iterator[None]:
        """Locks threads and processes against each other: each opens the file itself."""
        with path.open("ab") as file:
            fcntl.flock(file, mode)
            yield


def _is_unused(path: Path) -> bool:
    try:
        return path.stat().st_mtime < time.time() - PIN_SECONDS
    except FileNotFoundError:
        return True
