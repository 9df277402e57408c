"""The bytes inside a compressed tar, a bounded piece at a time, with bounded memory."""

import bz2
import lzma
import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Protocol, Self, cast

import zstandard

from app.core.datasets.archives.limits import ArchiveLimits, Budget, damaged
from app.core.platform.errors import ArchiveInvalid, ArchiveRejected, ArchiveTooLarge

GZIP, BZIP2, XZ, ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd"
MAGICS = (GZIP, BZIP2, XZ, ZSTD)
BROKEN = (zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError, OSError, ValueError)
_INPUT = 16 * 1024
# Data that is real comes out larger than it went in, apart from frames and checksums. Without this
# rule, millions of empty streams, padding or a name of gigabytes in a gzip header would be read.
_IDLE_SHARE = 1.25
_IDLE_SLACK = 2 * 1024 * 1024  # bzip2 takes up to 900 kB before its first byte comes out


def refusal(error: Exception, limits: ArchiveLimits) -> ArchiveRejected:
    """Why a tar cannot be read, in the words of the service."""
    if "memory" in str(error).lower():  # of liblzma and of zstd, which have no code for it
        return ArchiveTooLarge(
            f"Unpacking the archive needs a window of more than {limits.max_window_bytes:,} bytes "
            "(TEMI_MAX_ARCHIVE_WINDOW_BYTES); compress it with a smaller one."
        )
    return damaged("tar", error)


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class TarStream(AbstractContextManager["TarStream"]):
    """What is inside; every byte is paid for as it is read, headers and skipped members too."""

    def __init__(self, path: Path, limits: ArchiveLimits, budget: Budget) -> None:
        self._file = path.open("rb")
        self._budget = budget
        head = self._file.read(max(map(len, MAGICS)))
        self._file.seek(0)
        self.is_compressed = head.startswith(MAGICS)
        self.hides_its_end = head.startswith(ZSTD)  # zstd does not tell if a frame is cut short
        self._size = path.stat().st_size
        self._input = _Input(self._file)
        self._content = self._open(head, limits) if self.is_compressed else self._file
        self.position = 0

    @property
    def left(self) -> int | None:
        """Bytes up to the end, where they are known."""
        return None if self.is_compressed else self._size - self.position

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; less only at the end."""
        pieces, wanted = [], size
        while wanted and (piece := self._content.read(wanted)):
            self._budget.spend(len(piece))
            self._input.produced += len(piece)
            pieces.append(piece)
            wanted -= len(piece)
        self.position += size - wanted
        return b"".join(pieces)

    def _open(self, head: bytes, limits: ArchiveLimits) -> Readable:
        if head.startswith(ZSTD):
            decompressor = zstandard.ZstdDecompressor(max_window_size=limits.max_window_bytes)
            source = cast(IO[bytes], self._input)  # only its `read` is called
            return decompressor.stream_reader(source, read_size=_INPUT, read_across_frames=True)
        if head.startswith(GZIP):
            return _Streams(self._input, GZIP, _Gzip)
        if head.startswith(BZIP2):
            return _Streams(self._input, BZIP2, bz2.BZ2Decompressor)

        def new_xz() -> _Decompressor:
            return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.max_window_bytes)

        return _Streams(self._input, XZ, new_xz)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _Input:
    """The compressed file; refuses to go on where nothing comes out of what is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._taken = 0
        self.produced = 0

    def read(self, size: int) -> bytes:
        if self._taken > self.produced * _IDLE_SHARE + _IDLE_SLACK:
            raise ArchiveInvalid(
                f"{self._taken:,} compressed bytes of the archive unpack to only "
                f"{self.produced:,}; send a tar without padding or empty streams."
            )
        data = self._file.read(size)
        self._taken += len(data)
        return data


class _Streams:
    """Compressed streams one after another, as the formats allow; what follows them is ignored."""

    def __init__(self, source: _Input, magic: bytes, new: Callable[[], _Decompressor]) -> None:
        self._source = source
        self._magic = magic
        self._new = new
        self._stream = new()

    def read(self, size: int) -> bytes:
        data = b""
        while True:
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    return b""
                self._stream = self._new()
            elif self._stream.needs_input:
                data = self._source.read(_INPUT)
            found = self._stream.decompress(data, size)
            if found:
                return found
            if not data and self._stream.needs_input and not self._stream.eof:
                raise EOFError("the compressed data is cut short")
            data = b""

    def _next_stream(self) -> bytes:
        """The start of what follows, without the zeros that may stand between."""
        rest = self._stream.unused_data.lstrip(b"\x00")
        while len(rest) < len(self._magic) and (more := self._source.read(_INPUT)):
            rest = (rest + more).lstrip(b"\x00")
        return rest if rest.startswith(self._magic) else b""


class _Gzip:
    """zlib with the interface of its younger sisters; it reads headers of any length in C."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(31)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
