"""Decompresses a tar in blocks, with bounded memory."""

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
DECOMPRESSION_ERRORS = (
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    EOFError,
    OSError,
    ValueError,
)
_INPUT = 16 * 1024
# Real data unpacks to more bytes than it was packed to, apart from frames and checksums. Without
# this rule, millions of empty streams, padding or gigabytes of a gzip header would be read.
_IDLE_SHARE = 1.25
_IDLE_SLACK = 2 * 1024 * 1024  # bzip2 reads up to 900 kB before it returns the first byte


def tar_error(error: Exception, limits: ArchiveLimits) -> ArchiveRejected:
    """Translates an error of a decompressor."""
    if "memory" in str(error).lower():  # liblzma and zstd have no code for it
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
    """The decompressed tar; counts every byte that is read, also of headers and skipped members."""

    def __init__(self, path: Path, limits: ArchiveLimits, budget: Budget) -> None:
        self._file = path.open("rb")
        self._budget = budget
        head = self._file.read(max(map(len, MAGICS)))
        self._file.seek(0)
        self.is_compressed = head.startswith(MAGICS)
        self.may_be_truncated = head.startswith(ZSTD)  # zstd does not report a truncated frame
        self._size = path.stat().st_size
        self._input = _Input(self._file)
        self._content = self._open(head, limits) if self.is_compressed else self._file
        self.position = 0

    @property
    def left(self) -> int | None:
        """Bytes up to the end; None if the tar is compressed."""
        return None if self.is_compressed else self._size - self.position

    def read(self, size: int) -> bytes:
        """Reads `size` bytes, or fewer at the end."""
        blocks, left = [], size
        while left and (block := self._content.read(left)):
            self._budget.consume(len(block))
            self._input.produced += len(block)
            blocks.append(block)
            left -= len(block)
        self.position += size - left
        return b"".join(blocks)

    def _open(self, head: bytes, limits: ArchiveLimits) -> Readable:
        if head.startswith(ZSTD):
            decompressor = zstandard.ZstdDecompressor(max_window_size=limits.max_window_bytes)
            source = cast(IO[bytes], self._input)  # only its `read` is called
            return decompressor.stream_reader(source, read_size=_INPUT, read_across_frames=True)
        if head.startswith(GZIP):
            return _ConcatenatedStreams(self._input, GZIP, _Gzip)
        if head.startswith(BZIP2):
            return _ConcatenatedStreams(self._input, BZIP2, bz2.BZ2Decompressor)

        def new_xz() -> _Decompressor:
            return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=limits.max_window_bytes)

        return _ConcatenatedStreams(self._input, XZ, new_xz)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _Input:
    """The compressed file; refuses data that unpacks to nothing."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._consumed = 0
        self.produced = 0

    def read(self, size: int) -> bytes:
        if self._consumed > self.produced * _IDLE_SHARE + _IDLE_SLACK:
            raise ArchiveInvalid(
                f"{self._consumed:,} compressed bytes of the archive unpack to only "
                f"{self.produced:,}; send a tar without padding or empty streams."
            )
        data = self._file.read(size)
        self._consumed += len(data)
        return data


class _ConcatenatedStreams:
    """Concatenated compressed streams, as the formats allow; trailing data is ignored."""

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
            block = self._stream.decompress(data, size)
            if block:
                return block
            if not data and self._stream.needs_input and not self._stream.eof:
                raise EOFError("the compressed data is truncated")
            data = b""

    def _next_stream(self) -> bytes:
        """The start of the next stream, after zero padding; empty if there is none."""
        rest = self._stream.unused_data.lstrip(b"\x00")
        while len(rest) < len(self._magic) and (more := self._source.read(_INPUT)):
            rest = (rest + more).lstrip(b"\x00")
        return rest if rest.startswith(self._magic) else b""


class _Gzip:
    """zlib with the interface of the bz2 and lzma decompressors."""

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
