"""Creates a backup while the service runs.

Rows are read in one snapshot, then the files, under a retention lock.
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
from app.core.platform.db import Database
from app.core.platform.errors import StorageCorrupt
from app.core.platform.migrations import current_revision
from app.core.storage import Storage
from app.core.storage.deletion.retention import RETENTION_SECONDS, Retention, retain

_READERS = 8  # hides the latency of a bucket
_RENEW_SECONDS = RETENTION_SECONDS / 10
_NAMED = 100  # missing files that the manifest lists

Progress = Callable[[str, int], None]


@dataclass
class Backup:
    """The content of a backup."""

    path: Path
    tables: dict[str, int] = field(default_factory=dict)
    files: int = 0
    file_bytes: int = 0
    missing: list[str] = field(default_factory=list)  # files that rows refer to


def create_backup(
    db: Database,
    storage: Storage,
    path: Path,
    *,
    images: bool = True,
    progress: Progress = lambda *_: None,
) -> Backup:
    backup = Backup(path)
    created_at = time.time()
    with (
        retain(db, f"backup to {path}") as retention,
        _atomic_file(path) as file,
        tempfile.TemporaryFile() as keys,
    ):
        archive = ArchiveWriter(file)
        with db.snapshot() as session:
            revision = current_revision(session.connection())
            backup.tables = dump_rows(session, archive.add)
            progress("rows", sum(backup.tables.values()))
            keys.writelines(f"{key}\n".encode() for key in artifact_keys(session, storage))
            artifacts = keys.tell()
            if images:
                keys.writelines(f"{key}\n".encode() for key in image_keys(session))
        copier = _FileCopier(storage, archive, backup, _Renewal(retention), progress)
        keys.seek(0)
        copier.copy_artifacts(_lines(keys, artifacts))
        copier.copy_images(_lines(keys, None))
        retention.renew()  # else files may have been deleted before they were read
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


class _Renewal:
    """Renews the retention lock from time to time."""

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._at = time.monotonic()

    def __call__(self) -> None:
        if time.monotonic() - self._at > _RENEW_SECONDS:
            self._retention.renew()
            self._at = time.monotonic()


@dataclass(frozen=True)
class _FileCopier:
    storage: Storage
    archive: ArchiveWriter
    backup: Backup
    renew: _Renewal
    progress: Progress

    def copy_artifacts(self, keys: Iterable[str]) -> None:
        """Copies file by file: artifacts may be larger than the memory."""
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

    def copy_images(self, keys: Iterable[str]) -> None:
        """Reads several images at the same time: there may be millions."""
        with ThreadPoolExecutor(_READERS) as pool:
            for key, data in _read_ahead(pool, self._read, keys):
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


def _read_ahead(
    pool: ThreadPoolExecutor, read: Callable[[str], bytes | None], keys: Iterable[str]
) -> Iterator[tuple[str, bytes | None]]:
    """Results in order, with some reads ahead."""
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
def _atomic_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that exists under its name only if the block ends without an error."""
    if path.exists():
        raise FileExistsError(f"{path} exists already; a backup does not replace it.")
    temporary = path.with_name(f".{path.name}.partial")
    try:
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
