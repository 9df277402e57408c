"""Storage in a local folder: every file is written to a temporary name, synced, and renamed."""

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from app.core.storage.base import StoredFile, check_sha256, delete_old_files, raise_if_full
from app.core.storage.keys import blob_hash
from app.core.storage.local_batch import LocalBatch
from app.core.storage.syncing import sync

_BLOCK = 1024 * 1024


class LocalStorage:
    reads_at_once = 1  # reading from a disk takes less time than decoding an image

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._temporary_dir = self.root / "tmp"
        self._temporary_dir.mkdir(parents=True, exist_ok=True)
        self._blob_folders: dict[str, str] = {}

    def path(self, key: str) -> Path:
        path = self.resolve(key)
        if not path.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return path

    def resolve(self, key: str) -> Path:
        """The path of a key, whether or not it holds a file."""
        path = (self.root / key).resolve()
        if not path.is_relative_to(self.root):
            raise ValueError(f"key leaves the storage folder: {key!r}")
        return path

    def _locate(self, key: str) -> str:
        """Like `resolve`, but the folders of images are checked once: an ingest has many."""
        if blob_hash(key) is None:
            return str(self.resolve(key))
        folder, _, name = key.rpartition("/")
        if folder not in self._blob_folders:
            self._blob_folders[folder] = str(self.resolve(folder))
        return f"{self._blob_folders[folder]}/{name}"

    def exists(self, key: str) -> bool:
        return self.resolve(key).is_file()

    def size(self, key: str) -> int:
        return self.path(key).stat().st_size

    def read(self, key: str) -> bytes:
        data = self.resolve(key).read_bytes()
        check_sha256(key, data, blob_hash(key))
        return data

    def write(self, key: str, data: bytes) -> None:
        with self.writing(key) as file:
            file.write(data)

    @contextmanager
    def writing(self, key: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """A file that is stored under its key if the block ends without an error."""
        temporary = self._temporary_dir / uuid4().hex
        try:
            with temporary.open("w+b") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if replace:
                _rename(temporary, self.resolve(key))
            else:
                _link(temporary, self.resolve(key))
        except OSError as error:
            raise_if_full(error)
            raise
        finally:
            temporary.unlink(missing_ok=True)

    def move_in(self, key: str, path: Path) -> None:
        """Moves a finished file to its key; an upload may have been written there already."""
        sync(path)
        try:
            if path.resolve() == self.resolve(key):
                sync(path.parent)
            elif path.stat().st_dev == self._temporary_dir.stat().st_dev:
                _rename(path, self.resolve(key))
            else:
                self._copy(key, path)
        except OSError as error:
            raise_if_full(error)
            raise

    def _copy(self, key: str, path: Path) -> None:
        with path.open("rb") as source, self.writing(key) as target:
            shutil.copyfileobj(source, target, _BLOCK)
        path.unlink()

    def batch(self) -> LocalBatch:
        return LocalBatch(self._temporary_dir, self._locate)

    def delete(self, key: str) -> None:
        self.resolve(key).unlink(missing_ok=True)

    def delete_folder(self, key: str) -> None:
        """Deletes every file whose key starts with `key/`, if there are any."""
        folder = self.resolve(key)
        if self._temporary_dir.is_relative_to(folder):
            raise ValueError(f"not a folder of files: {key!r}")
        if folder.is_dir():
            shutil.rmtree(folder)

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Every file whose key starts with `folder/`, without those deleted meanwhile."""
        for parent, _, names in os.walk(self.resolve(folder)):
            for name in names:
                path = Path(parent, name)
                if found := self.stat(path.relative_to(self.root).as_posix()):
                    yield found

    def stat(self, key: str) -> StoredFile | None:
        try:
            found = self.resolve(key).stat()
        except FileNotFoundError:
            return None
        return StoredFile(key, found.st_size, found.st_mtime)

    def touch(self, key: str) -> bool:
        try:
            os.utime(self._locate(key))
        except FileNotFoundError:
            return False
        return True

    def delete_unless_young(self, key: str, before: float) -> bool:
        """Renames the file before its age is read: a concurrent `touch` then returns False."""
        path, temporary = self.resolve(key), self._temporary_dir / uuid4().hex
        try:
            path.rename(temporary)
        except FileNotFoundError:
            return True
        if temporary.stat().st_mtime > before:
            temporary.replace(path)
            return False
        temporary.unlink()
        return True

    def clean(self, older_than_seconds: float, now: float) -> int:
        return delete_old_files(self._temporary_dir, now - older_than_seconds)


def _rename(temporary: Path, final: Path) -> None:
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary.replace(final)
    sync(final.parent)  # the new name itself must survive a power cut


def _link(temporary: Path, final: Path) -> None:
    """Like a rename that does not replace an existing file."""
    final.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        os.link(temporary, final)
    sync(final.parent)
