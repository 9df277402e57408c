"""Files by key. A key either holds a whole file or nothing."""

import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from app.core.errors import StorageFull

_FULL = {errno.ENOSPC, errno.EDQUOT}


class StoredFile(NamedTuple):
    """What is known of a file without reading it."""

    key: str
    bytes: int
    modified: float  # seconds since 1970, by the storage's clock


class Batch(Protocol):
    """Many small files that appear together. Threads may add at the same time."""

    def write(self, key: str, data: bytes) -> None: ...

    def keep(self) -> None:
        """All that was written before the call is kept under its key."""


class Storage(Protocol):
    def path(self, key: str) -> Path:
        """Where the file of a key is on this machine: for memory maps and for sending."""

    def exists(self, key: str) -> bool: ...

    def read(self, key: str) -> bytes: ...

    def write(self, key: str, data: bytes) -> None: ...

    def writing(self, key: str) -> AbstractContextManager[IO[bytes]]:
        """A file that appears under its key when the block ends well, and never otherwise."""

    def many(self) -> Batch: ...

    def delete(self, key: str) -> None: ...

    def delete_folder(self, key: str) -> None:
        """Every file whose key starts with `key/`; it may be gone already."""

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Every file whose key starts with `folder/`, in no order; none if there is no such."""

    def look(self, key: str) -> StoredFile | None: ...

    def touch(self, key: str) -> bool:
        """Make a file young, as if it had just been written; False if it is not there."""

    def delete_unless_young(self, key: str, before: float) -> bool:
        """Delete a file last written or touched before this time; False if it is younger.

        Whoever touches it in this moment either keeps it or is told that it is not there.
        """

    def clean(self, older_than_seconds: float, now: float) -> int:
        """Remove what crashed writers left aside."""


def blob_key(sha256: str) -> str:
    return f"sha256/{sha256[:2]}/{sha256}"


def raise_if_full(error: OSError) -> None:
    if error.errno in _FULL:
        raise StorageFull(
            "The storage is full; nothing of this request was kept. Free some space and retry."
        ) from error
