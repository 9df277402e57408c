"""Group commit in a local folder: many small files are synced and renamed together."""

import os
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from itertools import count
from pathlib import Path
from uuid import uuid4

from app.core.storage.base import raise_if_full
from app.core.storage.syncing import GroupSync, sync_all

_SMALL_BATCH = 64  # files: fewer are synced one by one, without what other programs have written


class LocalBatch:
    """Threads may add at the same time. Keys hold their new files only after `flush`."""

    def __init__(self, temporary_dir: Path, locate: Callable[[str], str]) -> None:
        self._prefix = f"{temporary_dir}/{uuid4().hex}-"
        self._numbers = count()
        self._locate = locate
        self._group_sync = GroupSync.of(temporary_dir)
        self._pending: dict[str, str] = {}  # temporary files by key
        self._lock = threading.Lock()

    def write(self, key: str, data: bytes) -> None:
        temporary = f"{self._prefix}{next(self._numbers)}"
        try:
            _create(temporary, data)
        except OSError as error:
            _delete([temporary])
            self.discard()  # a database on the same disk may need the space to record the error
            raise_if_full(error)
            raise
        with self._lock:
            replaced = self._pending.pop(key, None)
            self._pending[key] = temporary
        if replaced is not None:
            _delete([replaced])

    def discard(self) -> None:
        """Deletes what was written since the last flush."""
        _delete(self._take().values())

    def flush(self) -> None:
        """Returns when all that was written before the call is on the disk under its key.

        The bytes are on the disk before a key names them, so that a power cut leaves no key with a
        part of its file; and the names are on the disk before the caller relies on them.
        """
        ready = self._take()
        if not ready:
            return
        try:
            finals = {self._locate(key): temporary for key, temporary in ready.items()}
            folders = {final.rpartition("/")[0] for final in finals}
            for folder in folders:
                Path(folder).mkdir(parents=True, exist_ok=True)
            self._sync(ready.values(), files=len(ready))
            for final, temporary in finals.items():
                os.replace(temporary, final)  # noqa: PTH105 - faster
            self._sync(folders, files=len(ready))
        except BaseException as error:
            _delete(ready.values())  # those that were not renamed
            if isinstance(error, OSError):
                raise_if_full(error)
            raise

    def _take(self) -> dict[str, str]:
        with self._lock:
            taken, self._pending = self._pending, {}
        return taken

    def _sync(self, paths: Collection[str], *, files: int) -> None:
        if self._group_sync is None or files < _SMALL_BATCH:
            sync_all(paths)
        else:
            self._group_sync.sync()


def _create(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]
    finally:
        os.close(file)


def _delete(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108 - faster
