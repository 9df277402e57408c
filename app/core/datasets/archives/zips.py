"""The members of a zip, in the order of its directory."""

import stat
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from app.core.datasets.archives.limits import (
    BLOCK,
    ArchiveLimits,
    Budget,
    checked_name,
    damaged,
    member_too_large,
    quoted,
    read_bounded,
)
from app.core.datasets.archives.zip_directory import ZipEntry, read_directory, read_end
from app.core.datasets.sources.base import Member
from app.core.platform.errors import ArchiveInvalid, ArchiveUnsafePath, ImageUndecodable

_STORED, _DEFLATED = 0, 8
_METHODS = {
    1: "shrink",
    6: "implode",
    9: "deflate64",
    12: "bzip2",
    14: "LZMA",
    93: "zstd",
    95: "xz",
    98: "PPMd",
}
_ENCRYPTED = 0x1 | 0x40
_LOCAL = struct.Struct("<4s5H3L2H")


def read_zip(path: Path, limits: ArchiveLimits) -> Iterator[Member]:
    size = path.stat().st_size
    budget = Budget(size, limits)
    with path.open("rb") as file:
        for position, (name, entry) in enumerate(zip_entries(path, limits)):

            def read(entry: ZipEntry = entry) -> bytes:
                try:
                    if entry.offset > size:
                        raise ValueError("its header is beyond the end of the file")
                    return _read_entry(file, entry, limits, budget)
                except (zlib.error, struct.error, OSError, ValueError) as error:
                    raise ImageUndecodable(f"It cannot be unpacked: {error}") from error

            yield Member(position, name, read)


def zip_entries(path: Path, limits: ArchiveLimits) -> Iterator[tuple[str, ZipEntry]]:
    """Name and entry of each file, after all checks that the directory allows."""
    with path.open("rb") as directory:
        try:
            for entry in read_directory(directory, read_end(directory), limits):
                name = checked_name(entry.name, limits)
                _check_entry(entry)
                if not entry.is_folder:
                    yield name, entry
        except (struct.error, OSError, ValueError) as error:
            raise damaged("zip", error) from error


def _check_entry(entry: ZipEntry) -> None:
    if stat.S_ISLNK(entry.mode):
        raise ArchiveUnsafePath(f"The member {quoted(entry.name)} is a link.")
    if entry.flags & _ENCRYPTED:
        raise ArchiveInvalid("The zip archive is encrypted; send it without a password.")
    if entry.method not in (_STORED, _DEFLATED) and not entry.is_folder:
        method = _METHODS.get(entry.method, f"method {entry.method}")
        raise ArchiveInvalid(
            f"The member {quoted(entry.name)} of the zip is compressed with {method}; "
            "members must be stored or deflated."
        )


def _read_entry(file: IO[bytes], entry: ZipEntry, limits: ArchiveLimits, budget: Budget) -> bytes:
    if entry.size > limits.max_member_bytes:
        raise member_too_large(limits)
    data = read_bounded(_unpacked(file, entry, budget), limits)
    if len(data) != entry.size:
        raise ValueError(f"it has {len(data):,} bytes, not {entry.size:,}")
    if zlib.crc32(data) != entry.crc:
        raise ValueError("its checksum is wrong")
    return data


def _unpacked(file: IO[bytes], entry: ZipEntry, budget: Budget) -> Iterator[bytes]:
    """Counts the unpacked bytes and stops if they exceed the size in the directory."""
    total = 0
    packed = _packed(file, entry)
    for block in packed if entry.method == _STORED else _inflated(packed):
        budget.consume(len(block))
        total += len(block)
        if total > entry.size:
            raise ValueError(f"it has more than the {entry.size:,} bytes that it claims")
        yield block


def _packed(file: IO[bytes], entry: ZipEntry) -> Iterator[bytes]:
    file.seek(entry.offset)
    signature, *_, name_bytes, extra_bytes = _LOCAL.unpack(file.read(_LOCAL.size))
    if signature != b"PK\x03\x04":
        raise ValueError("its header is not where the directory says")
    file.seek(name_bytes + extra_bytes, 1)
    left = entry.packed
    while left:
        block = file.read(min(BLOCK, left))
        if not block:
            raise ValueError(f"{left:,} bytes are missing")
        left -= len(block)
        yield block


def _inflated(blocks: Iterator[bytes]) -> Iterator[bytes]:
    inflate = zlib.decompressobj(-zlib.MAX_WBITS)
    for block in blocks:
        while block and not inflate.eof:
            yield inflate.decompress(block, BLOCK)
            block = inflate.unconsumed_tail
    while rest := inflate.decompress(b"", BLOCK):  # what did not fit in the last block
        yield rest
    if not inflate.eof:
        raise ValueError("the compressed data is truncated")
