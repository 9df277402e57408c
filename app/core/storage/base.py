"""Files by key. A key either holds a whole file or nothing."""

import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, NamedTuple, Protocol

from app.core.platform.errors import StorageFull

_FULL = {errno.ENOSPC, errno.EDQUOT}


class StoredFile(NamedTuple):
    """What is known of a file without reading it."""

    key: str
    bytes: int
    modified: float  # seconds since 1970, by the storage's clock


class Batch(Protocol):
    """Many small files, written side by side. Threads may add at the same time."""

    def write(self, key: str, data: bytes) -> None: ...

    def keep(self) -> None:
        """All that was written before the call is kept under its key."""

    def drop(self) -> None:
        """What was written and not kept is of no use any more."""


class Storage(Protocol):
    """FileNotFoundError tells that a key holds nothing.

    A server that is gone raises StorageUnavailable; bytes that are not those that were written
    raise StorageCorrupt.
    """

    @property
    def reads_at_once(self) -> int:
        """How many files are worth asking for side by side, by somebody who wants them all."""

    def path(self, key: str) -> Path:
        """A whole file on this machine, for memory maps and for sending; never to be written to.

        It is to be opened within a minute. Once open, its bytes stay for as long as it is.
        """

    def exists(self, key: str) -> bool: ...

    def size(self, key: str) -> int: ...

    def read(self, key: str) -> bytes: ...

    def write(self, key: str, data: bytes) -> None: ...

    def writing(self, key: str, *, replace: bool = True) -> AbstractContextManager[IO[bytes]]:
        """A file that appears under its key when the block ends well, and never otherwise.

        Until then it lies on this machine: it can be read, sought, and mapped by its name.
        Without `replace`, a file that the key holds already stays.
        """

    def move_in(self, key: str, path: Path) -> None:
        """Move a finished file of this machine to its key."""

    def batch(self) -> Batch: ...

    def delete(self, key: str) -> None: ...

    def delete_folder(self, key: str) -> None:
        """Every file whose key starts with `key/`; it may be gone already."""

    def list(self, folder: str) -> Iterator[StoredFile]:
        """Every file whose key starts with `folder/`, in no order; none if there is no such."""

    def stat(self, key: str) -> StoredFile | None: ...

    def touch(self, key: str) -> bool:
        """Make a file young, as if it had just been written; False if it has to be written."""

    def delete_unless_young(self, key: str, before: float) -> bool:
        """Delete a file last written or touched before this time; False if it is younger.

        Whoever touches it in this moment either keeps it or is told that it is not there.
        """

    def clean(self, older_than_seconds: float, now: float) -> int:
        """Remove what crashed writers left aside on this machine."""


def raise_if_full(error: OSError) -> None:
    if error.errno in _FULL:
        raise StorageFull(
            "The storage is full; nothing of this request was kept. Free some space and retry."
        ) from error
