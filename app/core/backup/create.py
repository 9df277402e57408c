"""Make a backup while the service runs.

The rows are read in one snapshot; the files after it, under a hold that keeps all of them there.
"""

import os
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO

from app.core.backup.archive import ArchiveWriter
from app.core.backup.files import FOLDER, artifact_keys, image_keys, may_vanish
from app.core.backup.rows import dump_rows
from app.core.platform.errors import StorageCorrupt
from app.core.platform.migrations import current_revision
from app.core.runtime import Runtime
from app.core.storage import Storage
from app.core.storage.deletion.retention import RETENTION_SECONDS, Retention, retain

_READERS = 8  # a bucket answers slowly, but many at once
_RENEW_SECONDS = RETENTION_SECONDS / 10
_NAMED = 100  # missing files that the manifest names

Progress = Callable[[str, int], None]


@dataclass
class Backup:
    """What a backup holds."""

    path: Path
    tables: dict[str, int] = field(default_factory=dict)
    files: int = 0
    file_bytes: int = 0
    missing: list[str] = field(default_factory=list)  # rows refer to them, and they are not there


def make_backup(
    runtime: Runtime, path: Path, *, images: bool = True, progress: Progress = lambda *_: None
) -> Backup:
    backup = Backup(path)
    created_at = time.time()
    with (
        retain(runtime.db, f"backup to {path}") as held,
        _appearing(path) as file,
        tempfile.TemporaryFile() as keys,
    ):
        archive = ArchiveWriter(file)
        with runtime.db.snapshot() as session:
            revision = current_revision(session.connection())
            backup.tables = dump_rows(session, archive.add)
            progress("rows", sum(backup.tables.values()))
            keys.writelines(f"{key}\n".encode() for key in artifact_keys(session, runtime.storage))
            artifacts = keys.tell()
            if images:
                keys.writelines(f"{key}\n".encode() for key in image_keys(session))
        copying = _Copying(runtime.storage, archive, backup, _Renewing(held), progress)
        keys.seek(0)
        copying.artifacts(_lines(keys, artifacts))
        copying.images(_lines(keys, None))
        held.renew()  # else files may have gone before they were read
        archive.finish(
            {
                "service": version("temi-service"),
                "revision": revision,
                "created_at": created_at,
                "tables": backup.tables,
                "images": images,
                "files": backup.files,
                "file_bytes": backup.file_bytes,
                "missing": {"count": len(backup.missing), "first": backup.missing[:_NAMED]},
            }
        )
    return backup


class _Renewing:
    def __init__(self, held: Retention) -> None:
        self._held = held
        self._at = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._at > _RENEW_SECONDS:
            self._held.renew()
            self._at = time.monotonic()


@dataclass(frozen=True)
class _Copying:
    storage: Storage
    archive: ArchiveWriter
    backup: Backup
    renew: _Renewing
    progress: Progress

    def artifacts(self, keys: Iterable[str]) -> None:
        """They may be larger than the memory."""
        for key in keys:
            try:
                with self.storage.path(key).open("rb") as file:
                    size = os.fstat(file.fileno()).st_size
                    self.archive.copy(f"{FOLDER}{key}", size, file)
            except (FileNotFoundError, StorageCorrupt):
                if not may_vanish(key):
                    self.backup.missing.append(key)
            else:
                self._count(size)

    def images(self, keys: Iterable[str]) -> None:
        """They may be very many."""
        with ThreadPoolExecutor(_READERS) as pool:
            for key, data in _ahead(pool, self._read, keys):
                if data is None:
                    self.backup.missing.append(key)
                else:
                    self.archive.add(f"{FOLDER}{key}", data)
                    self._count(len(data))

    def _read(self, key: str) -> bytes | None:
        try:
            return self.storage.read(key)
        except (FileNotFoundError, StorageCorrupt):
            return None

    def _count(self, size: int) -> None:
        self.renew()
        self.backup.files += 1
        self.backup.file_bytes += size
        self.progress("files", self.backup.files)


def _ahead(
    pool: ThreadPoolExecutor, read: Callable[[str], bytes | None], keys: Iterable[str]
) -> Iterator[tuple[str, bytes | None]]:
    """In order, with a few more under way than are taken."""
    waiting: deque[tuple[str, Future[bytes | None]]] = deque()
    for key in keys:
        waiting.append((key, pool.submit(read, key)))
        if len(waiting) >= 2 * _READERS:
            first, future = waiting.popleft()
            yield first, future.result()
    for key, future in waiting:
        yield key, future.result()


def _lines(keys: IO[bytes], end: int | None) -> Iterator[str]:
    while (end is None or keys.tell() < end) and (line := keys.readline()):
        yield line.decode().rstrip("\n")


@contextmanager
def _appearing(path: Path) -> Iterator[IO[bytes]]:
    """A file that is there whole, or not at all."""
    if path.exists():
        raise FileExistsError(f"{path} is already there; a backup never takes its place.")
    aside = path.with_name(f".{path.name}.partial")
    try:
        with aside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        aside.rename(path)
    finally:
        aside.unlink(missing_ok=True)
