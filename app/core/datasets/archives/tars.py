"""The members of a tar, in order."""

from collections.abc import Iterator
from pathlib import Path
from tarfile import BLOCKSIZE

from app.core.datasets.archives.limits import (
    BLOCK,
    ArchiveLimits,
    Budget,
    checked_name,
    damaged,
    member_too_large,
    quoted,
    read_bounded,
    too_many_members,
)
from app.core.datasets.archives.streams import DECOMPRESSION_ERRORS, TarStream, tar_error
from app.core.datasets.archives.tar_headers import TarHeader, TarHeaders
from app.core.datasets.sources.base import Member
from app.core.platform.errors import ArchiveUnsafePath, ImageUndecodable


def read_tar(path: Path, limits: ArchiveLimits) -> Iterator[Member]:
    budget = Budget(path.stat().st_size, limits)
    try:
        with TarStream(path, limits, budget) as stream:
            yield from _members(stream, limits, budget)
    except DECOMPRESSION_ERRORS as error:
        raise tar_error(error, limits) from error


def _members(stream: TarStream, limits: ArchiveLimits, budget: Budget) -> Iterator[Member]:
    headers, count, position = TarHeaders(stream, limits), 0, 0
    while (header := headers.read()) is not None:
        count += 1
        if count > limits.max_members:
            raise too_many_members(limits)
        name = checked_name(header.name, limits)
        budget.check(header.size)
        content = _Content(stream, header, limits)
        if not header.is_folder:
            if not header.is_file:
                raise ArchiveUnsafePath(f"The member {quoted(name)} is a link or a device.")
            yield Member(position, name, content.read)
            position += 1
        content.skip()


class _Content:
    """The data of one member; `skip` advances to its end."""

    def __init__(self, stream: TarStream, header: TarHeader, limits: ArchiveLimits) -> None:
        self._stream = stream
        self._header = header
        self._limits = limits
        self._left = header.size

    def read(self) -> bytes:
        if self._header.is_sparse:
            raise ImageUndecodable("It is a sparse file; create the tar without --sparse.")
        if self._header.size > self._limits.max_member_bytes:
            raise member_too_large(self._limits)
        try:
            return read_bounded(self._blocks(), self._limits)
        except DECOMPRESSION_ERRORS as error:
            raise tar_error(error, self._limits) from error

    def skip(self) -> None:
        for _ in self._blocks():
            pass
        self._stream.read(-self._header.size % BLOCKSIZE)

    def _blocks(self) -> Iterator[bytes]:
        while self._left:
            block = self._stream.read(min(BLOCK, self._left))
            if not block:
                missing = f"{self._left:,} bytes of the member {quoted(self._header.name)}"
                raise damaged("tar", f"{missing} are missing")
            self._left -= len(block)
            yield block
