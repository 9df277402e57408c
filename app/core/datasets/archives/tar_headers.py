"""Reads the headers of a tar, one member at a time.

Python's own reader loads extended headers and sparse maps into memory, follows chains of them
without a limit, and skips members of any size that a header claims. Here the library still parses
the blocks, but they are read with limits.
"""

import tarfile
from dataclasses import dataclass

from app.core.datasets.archives.limits import ArchiveLimits, damaged, quoted
from app.core.datasets.archives.streams import TarStream
from app.core.platform.errors import ArchiveInvalid, ArchiveTooLarge

_BLOCK = tarfile.BLOCKSIZE
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENSIONS = (*_PAX, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_SPARSE = "GNU.sparse."  # pax records of a sparse member
_REAL_NAME = f"{_SPARSE}name"
_SPARSE_RECORDS = {_SPARSE, _REAL_NAME}
_MAX_DIGITS = 20  # of a size


@dataclass(frozen=True)
class TarHeader:
    name: str
    size: int  # of its data in the archive
    is_file: bool
    is_folder: bool
    is_sparse: bool


class TarHeaders:
    def __init__(self, stream: TarStream, limits: ArchiveLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._global_records: dict[str, str] = {}
        self._sparse_map_continues = False

    def read(self) -> TarHeader | None:
        """The header of the next member; the stream must be at the end of the previous one."""
        start, records = self._stream.position, dict(self._global_records)
        while (info := self._read_block()) is not None:
            if info.type not in _EXTENSIONS:
                return self._header(info, records, start)
            self._check_header_bytes(start, info.size)
            content = self._stream.read(-(-info.size // _BLOCK) * _BLOCK)[: info.size]
            if len(content) < info.size:
                raise damaged("tar", "it is truncated in a header")
            if info.type == tarfile.GNUTYPE_LONGNAME:
                records["path"] = content.partition(b"\x00")[0].decode(errors="surrogateescape")
            elif info.type in _PAX:
                records |= _pax_records(content)
            elif info.type == tarfile.XGLTYPE:
                self._global_records |= _pax_records(content)
                records |= self._global_records
        return None

    def _read_block(self) -> tarfile.TarInfo | None:
        block = self._stream.read(_BLOCK)
        if not block and (self._stream.position == 0 or self._stream.may_be_truncated):
            raise damaged("tar", "it is empty or truncated")
        if not block.strip(b"\x00"):
            return None  # two empty blocks end a tar; many writers omit them
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise damaged("tar", error) from error
        if info.size < 0:
            raise damaged("tar", f"a header claims {info.size:,} bytes")
        self._sparse_map_continues = info.type == tarfile.GNUTYPE_SPARSE and bool(block[482])
        return info

    def _header(self, info: tarfile.TarInfo, records: dict[str, str], start: int) -> TarHeader:
        while self._sparse_map_continues:  # in further blocks
            self._check_header_bytes(start, _BLOCK)
            block = self._stream.read(_BLOCK)
            if len(block) < _BLOCK:
                raise damaged("tar", "it is truncated in a header")
            self._sparse_map_continues = bool(block[504])
        name = records.get(_REAL_NAME) or records.get("path") or info.name
        header = TarHeader(
            name=name,
            size=_size(records.get("size"), info.size) if info.isreg() else 0,
            is_file=info.isreg(),
            is_folder=info.isdir(),
            is_sparse=info.type == tarfile.GNUTYPE_SPARSE
            or not records.keys().isdisjoint(_SPARSE_RECORDS),
        )
        left = self._stream.left
        if left is not None and header.size > left:
            raise ArchiveInvalid(
                f"The tar archive is damaged: the member {quoted(name)} claims {header.size:,} "
                f"bytes, and {left:,} are left."
            )
        return header

    def _check_header_bytes(self, start: int, more: int) -> None:
        if self._stream.position - start + more > self._limits.max_header_bytes:
            raise ArchiveTooLarge(
                f"The headers of a member have more than {self._limits.max_header_bytes:,} bytes "
                "(TEMI_MAX_ARCHIVE_HEADER_BYTES)."
            )


def _pax_records(content: bytes) -> dict[str, str]:
    """Parses `length key=value\\n` records; returns only path, size and sparse records."""
    records: dict[str, str] = {}
    at = 0
    while at < len(content) and content[at]:
        digits, space, _ = content[at : at + _MAX_DIGITS].partition(b" ")
        if not space or not digits.isdigit():
            raise damaged("tar", "a record of an extended header has no length")
        record = content[at + len(digits) + 1 : at + int(digits)]
        key, equals, value = record.partition(b"=")
        if not equals or not record.endswith(b"\n"):
            raise damaged("tar", "a record of an extended header is not `key=value`")
        name = key.decode(errors="replace")
        if name in ("path", "size", _REAL_NAME):
            records[name] = value[:-1].decode(errors="surrogateescape")
        elif name.startswith(_SPARSE):
            records[_SPARSE] = ""  # only their presence: their number has no limit
        at += int(digits)
    return records


def _size(text: str | None, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or len(text) > _MAX_DIGITS:
        raise damaged("tar", f"{text[:50]!r} is not a valid size of a member")
    return int(text)
