"""A folder of this machine: every file is written aside, synced, and renamed."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from app.core.storage.base import StoredFile, raise_if_full
from app.core.storage.checksums import check_bytes
from app.core.storage.keys import blob_hash

_BLOCK = 1024 * 1024


class LocalStorage:
    """Blobs and artifacts in a local folder."""

    reads_at_once = 1  # a disk is waited for less than an image is decoded

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._aside = self.root / "tmp"
        self._aside.mkdir(parents=True, exist_ok=True)

    def path(self, key: str) -> Path:
        """A whole file, for memory maps and for sending."""
        path = self.place(key)
        if not path.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return path

    def place(self, key: str) -> Path:
        """Where the file of a key is or would be."""
        path = (self.root / key).resolve()
        if not path.is_relative_to(self.root):
            raise ValueError(f"key leaves the storage folder: {key!r}")
        return path

    def exists(self, key: str) -> bool:
        return self.place(key).is_file()

    def size(self, key: str) -> int:
        return self.path(key).stat().st_size

    def read(self, key: str) -> bytes:
        data = self.place(key).read_bytes()
        check_bytes(key, data, blob_hash(key))
        return data

    def write(self, key: str, data: bytes) -> None:
        with self.writing(key) as file:
            file.write(data)

    @contextmanager
    def writing(self, key: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """A file that appears under its key when the block ends well, and never otherwise."""
        aside = self._aside / uuid4().hex
        try:
            with aside.open("w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if replace:
                _rename(aside, self.place(key))
            else:
                _link(aside, self.place(key))
        except OSError as error:
            raise_if_full(error)
            raise
        finally:
            aside.unlink(missing_ok=True)

    def move_in(self, key: str, path: Path) -> None:
        """Move a finished file to its key; it may have grown there."""
        _sync(path)
        try:
            if path.resolve() == self.place(key):
                _sync(path.parent)
            elif path.stat().st_dev == self._aside.stat().st_dev:
                _rename(path, self.place(key))
            else:
                self._copy(key, path)
        except OSError as error:
            raise_if_full(error)
            raise

    def _copy(self, key: str, path: Path) -> None:
        with path.open("rb") as source, self.writing(key) as target:
            shutil.copyfileobj(source, target, _BLOCK)
        path.unlink()

    def batch(self) -> "LocalBatch":
        return LocalBatch(self, self._aside)

    def delete(self, key: str) -> None:
        self.place(key).unlink(missing_ok=True)

    def delete_folder(self, key: str) -> None:
        """Every file whose key starts with `key/`; it may be gone already."""
        folder = self.place(key)
        if self._aside.is_relative_to(folder):
            raise ValueError(f"not a folder of files: {key!r}")
        if folder.is_dir():
            shutil.rmtree(folder)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Every file whose key starts with `folder/`; one that goes meanwhile may be missing."""
        for parent, _, names in os.walk(self.place(folder)):
            for name in names:
                path = Path(parent, name)
                if found := self.stat(path.relative_to(self.root).as_posix()):
                    yield found

    def stat(self, key: str) -> StoredFile | None:
        try:
            found = self.place(key).stat()
        except FileNotFoundError:
            return None
        return StoredFile(key, found.st_size, found.st_mtime)

    def touch(self, key: str) -> bool:
        try:
            os.utime(self.place(key))
        except FileNotFoundError:
            return False
        return True

    def delete_unless_young(self, key: str, before: float) -> bool:
        """Taken aside first: whoever looks for the file in this moment finds none."""
        path, aside = self.place(key), self._aside / uuid4().hex
        try:
            path.rename(aside)
        except FileNotFoundError:
            return True
        if aside.stat().st_mtime > before:
            aside.replace(path)  # somebody has just made use of it
            return False
        aside.unlink()
        return True

    def clean(self, older_than_seconds: float, now: float) -> int:
        """Remove what crashed writers left aside."""
        stale = [p for p in self._aside.iterdir() if now - p.stat().st_mtime > older_than_seconds]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)


class LocalBatch:
    """Many small files that appear together: the disk is waited for once, not once a file.

    Threads may add at the same time. Until `keep` ends, none of the keys holds its new file.
    """

    def __init__(self, storage: LocalStorage, aside: Path) -> None:
        self._storage = storage
        self._folder = aside
        self._waiting: dict[str, Path] = {}

    def write(self, key: str, data: bytes) -> None:
        aside = self._folder / uuid4().hex
        try:
            aside.write_bytes(data)
        except OSError as error:
            aside.unlink(missing_ok=True)
            self.drop()  # the room that they take may be all that a database on this disk needs
            raise_if_full(error)
            raise
        self._waiting[key] = aside

    def drop(self) -> None:
        """Remove what was written and not kept."""
        for _ in range(len(self._waiting)):
            _, aside = self._waiting.popitem()
            aside.unlink(missing_ok=True)

    def keep(self) -> None:
        """All that was written before the call is on the disk under its key."""
        ready = [self._waiting.popitem() for _ in range(len(self._waiting))]
        try:
            for _, aside in ready:
                _sync(aside)
            finals = [self._storage.place(key) for key, _ in ready]
            folders = {final.parent for final in finals}
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            for (_, aside), final in zip(ready, finals, strict=True):
                aside.replace(final)
            for folder in folders:
                _sync(folder)
        except OSError as error:
            raise_if_full(error)
            raise


def _rename(aside: Path, final: Path) -> None:
    final.parent.mkdir(parents=True, exist_ok=True)
    aside.replace(final)
    _sync(final.parent)  # the new name itself must survive a power cut


def _link(aside: Path, final: Path) -> None:
    """Unlike a rename, it does not take the place of another file."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.link(aside, final)
    _sync(final.parent)


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
