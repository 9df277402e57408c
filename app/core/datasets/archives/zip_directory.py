"""Reads the central directory of a zip entry by entry.

Python's own reader creates an object for every entry when it opens the file: a gigabyte for a
million entries, also if the end record claims fewer.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from app.core.datasets.archives.limits import ArchiveLimits, damaged, quoted, too_many_members
from app.core.platform.errors import ArchiveTooLarge

_END = struct.Struct("<4s4H2LH")  # end of central directory
_END_64 = struct.Struct("<4sQ2H2L4Q")
_LOCATOR_64 = struct.Struct("<4sLQL")  # of the zip64 end record
_ENTRY = struct.Struct("<4s6H3L5H2L")
_MAX_COMMENT = 65_535
_DIRECTORY_SLACK = 256 * 1024  # one name, extra field and comment of maximum size
_IN_EXTRA = 0xFFFFFFFF  # the number does not fit and is in the extra field
_UTF8 = 0x800


@dataclass(frozen=True)
class ZipEnd:
    """The end record of a zip."""

    start: int  # of the directory, in the file
    size: int
    count: int
    shift: int  # bytes before the archive, which offsets do not count


@dataclass(frozen=True)
class ZipEntry:
    name: str
    flags: int
    method: int
    crc: int
    packed: int  # bytes in the archive
    size: int
    offset: int  # of its local header, in the file
    mode: int  # Unix mode, if the writer set it

    @property
    def is_folder(self) -> bool:
        return self.name.endswith("/")


def read_end(file: IO[bytes]) -> ZipEnd:
    """Reads the end record and checks it against the size of the file."""
    length = file.seek(0, 2)
    base = max(0, length - _MAX_COMMENT - _END.size)
    file.seek(base)
    tail = file.read(_MAX_COMMENT + _END.size)
    at = _find_end(tail)
    if at is None:
        raise damaged("zip", "it is truncated: its end record is missing")
    *_, count, size, offset, _comment = _END.unpack_from(tail, at)
    stop = base + at
    if (large := _read_end_64(file, stop)) is not None:
        count, size, offset = large
        stop -= _LOCATOR_64.size + _END_64.size
    start = stop - size
    if start < 0 or start < offset:
        raise damaged("zip", f"its directory claims {size:,} bytes, more than the file has")
    return ZipEnd(start=start, size=size, count=count, shift=start - offset)


def check_directory(end: ZipEnd, limits: ArchiveLimits) -> None:
    """Checks the end record before the directory is read."""
    if end.count > limits.max_members:
        raise too_many_members(limits)
    if end.size > end.count * limits.max_entry_bytes + _DIRECTORY_SLACK:
        raise ArchiveTooLarge(
            f"The directory of the zip has {end.size:,} bytes for {end.count:,} members "
            f"(TEMI_MAX_ARCHIVE_ENTRY_BYTES allows {limits.max_entry_bytes:,} for each)."
        )


def read_directory(file: IO[bytes], end: ZipEnd, limits: ArchiveLimits) -> Iterator[ZipEntry]:
    """The entries in order. The position of `file` must not be changed meanwhile."""
    check_directory(end, limits)
    file.seek(end.start)
    left, count = end.size, 0
    while left:
        head = file.read(min(left, _ENTRY.size))
        if len(head) < _ENTRY.size or not head.startswith(b"PK\x01\x02"):
            raise damaged("zip", f"entry {count + 1:,} of its directory is invalid")
        fields = _ENTRY.unpack(head)
        lengths = fields[10:13]  # of name, extra field and comment
        left -= _ENTRY.size + sum(lengths)
        count += 1
        if left < 0:
            raise damaged("zip", f"entry {count:,} of its directory is truncated")
        if count > limits.max_members:
            raise too_many_members(limits)
        name, extra, _comment = (file.read(length) for length in lengths)
        yield _entry(fields, name, extra, end.shift)
    if (count - end.count) % 65_536:  # some writers count modulo 65,536
        raise damaged(
            "zip", f"its directory has {count:,} entries, and the end record claims {end.count:,}"
        )


def _find_end(tail: bytes) -> int | None:
    """The position of the end record: the last one whose comment ends with the file."""
    at = len(tail)
    while (at := tail.rfind(b"PK\x05\x06", 0, at)) >= 0:
        if len(tail) - at >= _END.size:
            (comment,) = struct.unpack_from("<H", tail, at + 20)
            if at + _END.size + comment == len(tail):
                return at
    return None


def _read_end_64(file: IO[bytes], stop: int) -> tuple[int, int, int] | None:
    """Count, size and offset of the zip64 end record, if there is one."""
    start = stop - _LOCATOR_64.size - _END_64.size
    if start < 0:
        return None
    file.seek(start)
    record = file.read(_END_64.size + _LOCATOR_64.size)
    if record[_END_64.size :][:4] != b"PK\x06\x07":
        return None
    if not record.startswith(b"PK\x06\x06"):
        raise damaged("zip", "its zip64 end record is missing")
    *_, count, size, offset = _END_64.unpack_from(record)
    return count, size, offset


def _entry(fields: tuple[int, ...], name: bytes, extra: bytes, shift: int) -> ZipEntry:
    flags, method, crc, packed, size = fields[3], fields[4], *fields[7:10]
    text = name.partition(b"\x00")[0].decode("utf-8" if flags & _UTF8 else "cp437", "replace")
    size, packed, offset = _large_numbers([size, packed, fields[16]], extra, text)
    return ZipEntry(
        name=text,
        flags=flags,
        method=method,
        crc=crc,
        packed=packed,
        size=size,
        offset=offset + shift,
        mode=fields[15] >> 16,
    )


def _large_numbers(numbers: list[int], extra: bytes, name: str) -> list[int]:
    """Replaces numbers that do not fit into their fields with those of the zip64 extra field."""
    if _IN_EXTRA not in numbers:
        return numbers
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            values = extra[at + 4 : at + 4 + length]
            large = (v for (v,) in struct.iter_unpack("<Q", values[: len(values) // 8 * 8]))
            found = [next(large, -1) if n == _IN_EXTRA else n for n in numbers]
            if -1 not in found:
                return found
        at += 4 + length
    raise damaged("zip", f"the size of the member {quoted(name)} is missing")
