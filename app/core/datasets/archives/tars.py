"""The members of a tar, in the order in which they stand there."""

from collections.abc import Iterator
from pathlib import Path
from tarfile import BLOCKSIZE

from app.core.datasets.archives.limits import (
    BLOCK,
    ArchiveLimits,
    Budget,
    checked_name,
    collect,
    damaged,
    member_too_large,
    shown,
    too_many_members,
)
from app.core.datasets.archives.streams import BROKEN, TarStream, refusal
from app.core.datasets.archives.tar_headers import TarHeader, TarHeaders
from app.core.datasets.sources.base import Member, is_litter
from app.core.platform.errors import ArchiveUnsafePath, ImageUndecodable


def read_tar(path: Path, limits: ArchiveLimits) -> Iterator[Member]:
    budget = Budget(path.stat().st_size, limits)
    try:
        with TarStream(path, limits, budget) as stream:
            yield from _members(stream, limits, budget)
    except BROKEN as error:
        raise refusal(error, limits) from error


def _members(stream: TarStream, limits: ArchiveLimits, budget: Budget) -> Iterator[Member]:
    headers, seen, position = TarHeaders(stream, limits), 0, 0
    while (header := headers.read()) is not None:
        seen += 1
        if seen > limits.max_members:
            raise too_many_members(limits)
        name = checked_name(header.name, limits)
        budget.check(header.size)
        content = _Content(stream, header, limits)
        if not header.is_folder and not is_litter(name):
            if not header.is_file:
                raise ArchiveUnsafePath(f"The member {shown(name)} is a link or a device.")
            yield Member(position, name, content.read)
            position += 1
        content.skip()


class _Content:
    """The data of one member; what is not read is skipped."""

    def __init__(self, stream: TarStream, header: TarHeader, limits: ArchiveLimits) -> None:
        self._stream = stream
        self._header = header
        self._limits = limits
        self._left = header.size

    def read(self) -> bytes:
        if self._header.is_sparse:
            raise ImageUndecodable("Stored without its holes; pack it without --sparse.")
        if self._header.size > self._limits.max_member_bytes:
            raise member_too_large(self._limits)
        try:
            return collect(self._blocks(), self._limits)
        except BROKEN as error:
            raise refusal(error, self._limits) from error

    def skip(self) -> None:
        for _ in self._blocks():
            pass
        self._stream.read(-self._header.size % BLOCKSIZE)

    def _blocks(self) -> Iterator[bytes]:
        while self._left:
            block = self._stream.read(min(BLOCK, self._left))
            if not block:
                missing = f"{self._left:,} bytes of the member {shown(self._header.name)}"
                raise damaged("tar", f"{missing} are missing")
            self._left -= len(block)
            yield block
