"""The headers of a tar, one member at a time.

Python's own reader takes extended headers and maps of holes whole into memory, follows a chain of
them without end, and skips members of any size that a header claims. Here the blocks are still
parsed by the library, but what surrounds them is read with limits.
"""

import tarfile
from dataclasses import dataclass

from app.core.datasets.archives.limits import ArchiveLimits, damaged, shown
from app.core.datasets.archives.streams import TarStream
from app.core.platform.errors import ArchiveInvalid, ArchiveTooLarge

_BLOCK = tarfile.BLOCKSIZE
_PAX = (tarfile.XHDTYPE, tarfile.SOLARIS_XHDTYPE)
_EXTENSIONS = (*_PAX, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK)
_SPARSE = "GNU.sparse."  # pax records of a member that is stored without its holes
_REAL_NAME = f"{_SPARSE}name"
_HOLES = {_SPARSE, _REAL_NAME}
_LAST_DIGIT = 20  # of a size; longer numbers are no sizes


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
        self._for_all: dict[str, str] = {}
        self._more_follows = False

    def read(self) -> TarHeader | None:
        """The header of the next member; the stream must stand at the end of the one before."""
        start, known = self._stream.position, dict(self._for_all)
        while (info := self._read_block()) is not None:
            if info.type not in _EXTENSIONS:
                return self._header(info, known, start)
            self._check_header_bytes(start, info.size)
            content = self._stream.read(-(-info.size // _BLOCK) * _BLOCK)[: info.size]
            if len(content) < info.size:
                raise damaged("tar", "it ends inside a header")
            if info.type == tarfile.GNUTYPE_LONGNAME:
                known["path"] = content.partition(b"\x00")[0].decode(errors="surrogateescape")
            elif info.type in _PAX:
                known |= _pax_records(content)
            elif info.type == tarfile.XGLTYPE:
                self._for_all |= _pax_records(content)
                known |= self._for_all
        return None

    def _read_block(self) -> tarfile.TarInfo | None:
        block = self._stream.read(_BLOCK)
        if not block and (self._stream.position == 0 or self._stream.hides_its_end):
            raise damaged("tar", "it is empty or cut short")
        if not block.strip(b"\x00"):
            return None  # two empty blocks end a tar; many writers leave them out
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except tarfile.HeaderError as error:
            raise damaged("tar", error) from error
        if info.size < 0:
            raise damaged("tar", f"a header tells of {info.size:,} bytes")
        self._more_follows = info.type == tarfile.GNUTYPE_SPARSE and bool(block[482])
        return info

    def _header(self, info: tarfile.TarInfo, known: dict[str, str], start: int) -> TarHeader:
        while self._more_follows:  # the map of holes goes on in further blocks
            self._check_header_bytes(start, _BLOCK)
            block = self._stream.read(_BLOCK)
            if len(block) < _BLOCK:
                raise damaged("tar", "it ends inside a header")
            self._more_follows = bool(block[504])
        name = known.get(_REAL_NAME) or known.get("path") or info.name
        header = TarHeader(
            name=name,
            size=_size(known.get("size"), info.size) if info.isreg() else 0,
            is_file=info.isreg(),
            is_folder=info.isdir(),
            is_sparse=info.type == tarfile.GNUTYPE_SPARSE or not known.keys().isdisjoint(_HOLES),
        )
        left = self._stream.left
        if left is not None and header.size > left:
            raise ArchiveInvalid(
                f"The tar archive is damaged: the member {shown(name)} claims {header.size:,} "
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
    """`length key=value\\n`, as far as the key says anything about where and what a member is."""
    records: dict[str, str] = {}
    at = 0
    while at < len(content) and content[at]:
        digits, space, _ = content[at : at + _LAST_DIGIT].partition(b" ")
        if not space or not digits.isdigit():
            raise damaged("tar", "a record of an extended header has no length")
        record = content[at + len(digits) + 1 : at + int(digits)]
        key, equals, value = record.partition(b"=")
        if not equals or not record.endswith(b"\n"):
            raise damaged("tar", "a record of an extended header is no `key=value`")
        name = key.decode(errors="replace")
        if name in ("path", "size", _REAL_NAME):
            records[name] = value[:-1].decode(errors="surrogateescape")
        elif name.startswith(_SPARSE):
            records[_SPARSE] = ""  # only that there are such: their number has no limit
        at += int(digits)
    return records


def _size(text: str | None, otherwise: int) -> int:
    if text is None:
        return otherwise
    if not (text.isascii() and text.isdigit()) or len(text) > _LAST_DIGIT:
        raise damaged("tar", f"{text[:50]!r} is no size of a member")
    return int(text)
