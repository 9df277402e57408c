"""The interface of a storage: files by key. A key holds a whole file or nothing."""

import errno
import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from app.core.platform.errors import StorageCorrupt, StorageFull
from app.core.storage.keys import blob_key

_FULL = {errno.ENOSPC, errno.EDQUOT}


class StoredFile(NamedTuple):
    """Key, size and time of a file."""

    key: str
    bytes: int
    modified: float  # seconds since 1970, by the storage's clock


class Batch(Protocol):
    """Many small files, written concurrently. Threads may add at the same time."""

    def write(self, key: str, data: bytes) -> None: ...

    def flush(self) -> None:
        """Returns when all that was written before the call is stored under its key."""

    def discard(self) -> None:
        """Drops what was written since the last flush."""


class Storage(Protocol):
    """Methods raise FileNotFoundError if a key holds nothing, StorageUnavailable if the server
    does not answer, and StorageCorrupt if the bytes are not those that were written."""

    @property
    def reads_at_once(self) -> int:
        """How many concurrent reads make reading many files fastest."""

    def path(self, key: str) -> Path:
        """A whole file on this machine, for memory maps and for sending; never write to it.

        Open it within a minute. Its bytes stay readable for as long as it is open.
        """

    def exists(self, key: str) -> bool: ...

    def size(self, key: str) -> int: ...

    def read(self, key: str) -> bytes: ...

    def write(self, key: str, data: bytes) -> None: ...

    def writing(self, key: str, *, replace: bool = True) -> AbstractContextManager[IO[bytes]]:
        """A file that is stored under its key if the block ends without an error.

        Until then it is a local file that can be read, sought, and mapped by its name.
        Without `replace`, a file that the key already holds stays.
        """

    def move_in(self, key: str, path: Path) -> None:
        """Moves a finished local file to its key."""

    def batch(self) -> Batch: ...

    def delete(self, key: str) -> None: ...

    def delete_folder(self, key: str) -> None:
        """Deletes every file whose key starts with `key/`, if there are any."""

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Every file whose key starts with `folder/`, in any order."""

    def stat(self, key: str) -> StoredFile | None: ...

    def touch(self, key: str) -> bool:
        """Sets a file's time to now; False if the file must be written instead."""

    def delete_unless_young(self, key: str, before: float) -> bool:
        """Deletes a file last written or touched before this time; False if it is younger.

        A concurrent `touch` either keeps the file or returns False.
        """

    def clean(self, older_than_seconds: float, now: float) -> int:
        """Deletes temporary files that crashed writers left on this machine."""


def store_blob(storage: Storage, sha256: str, data: bytes, batch: Batch | None = None) -> None:
    """Writes the bytes of an image, or touches them, so that they are not deleted as garbage."""
    if not storage.touch(blob_key(sha256)):
        (batch or storage).write(blob_key(sha256), data)


def check_sha256(key: str, data: bytes, sha256: str | None) -> None:
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise corrupt(key)


def corrupt(key: str) -> StorageCorrupt:
    return StorageCorrupt(
        f"The file {key} in the storage is damaged (its SHA-256 does not match) and is not used. "
        "Restore it from a backup."
    )


def raise_if_full(error: OSError) -> None:
    if error.errno in _FULL:
        raise StorageFull(
            "The storage is full; nothing of this request was stored. Free some space and retry."
        ) from error


def delete_old_files(folder: Path, before: float) -> int:
    """Deletes the files of a local folder that were last written before this time."""
    deleted = 0
    for path in folder.iterdir():
        try:
            if path.stat().st_mtime < before:
                path.unlink()
                deleted += 1
        except FileNotFoundError:  # another process has deleted or moved it
            continue
    return deleted
