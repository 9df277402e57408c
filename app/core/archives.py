"""Zip and tar uploads, member by member, with every count and size checked on real bytes."""

import bz2
import gzip
import lzma
import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

import zstandard

from app.core.errors import (
    ArchiveInvalid,
    ArchiveTooLarge,
    ArchiveUnsafePath,
    DatasetEmpty,
    ImageTooLarge,
    ImageUndecodable,
)
from app.core.sources.base import Member, is_litter, storable_name

HEAD_BYTES = 512
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_RATIO_SLACK = 16 * 1024 * 1024  # small archives may expand further than the ratio allows
_CHECK_AT_ONCE = 20_000  # members; a longer listing is checked while it is read
_ZSTD = b"\x28\xb5\x2f\xfd"
_BROKEN_MEMBER = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    OSError,
)
_BROKEN_TAR = (
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    zstandard.ZstdError,
    EOFError,
    OSError,
    ValueError,
)


@dataclass(frozen=True, kw_only=True)
class ArchiveLimits:
    max_members: int
    max_ratio: float
    max_member_bytes: int


def check_archive(path: Path, limits: ArchiveLimits) -> None:
    """What can be known at once about an upload, so that the sender hears of it in the answer."""
    kind = archive_kind(path)
    if kind == "zip" and _zip_member_count(path) <= _CHECK_AT_ONCE:
        with _open_zip(path) as archive:
            if not list(_zip_members(archive, limits)):
                raise DatasetEmpty("The archive holds no files.")


def member_count(path: Path) -> int:
    """How many members to expect, folders included; 0 if only reading it all would tell."""
    return _zip_member_count(path) if archive_kind(path) == "zip" else 0


def archive_kind(path: Path) -> str:
    with path.open("rb") as file:
        kind = _kind(file.read(HEAD_BYTES))
    if kind is None:
        raise ArchiveInvalid("The upload is neither a zip nor a tar archive.")
    return kind


def is_archive_head(head: bytes) -> bool:
    """Whether a file that starts like this is taken as an archive."""
    return _kind(head) is not None


def _kind(head: bytes) -> str | None:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    packed = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00", _ZSTD)
    if head.startswith(packed) or head[257:262] == b"ustar":
        return "tar"
    return None


def read_members(path: Path, limits: ArchiveLimits) -> Iterator[Member]:
    """The files in an archive, in order. A member must be read before the next is asked for."""
    budget = _Budget(path, limits)
    if archive_kind(path) == "zip":
        yield from _read_zip(path, limits, budget)
    else:
        yield from _read_tar(path, limits, budget)


def checked_name(name: str) -> str:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or _DRIVE.match(name):
        raise ArchiveUnsafePath(f"The member {name[:200]!r} points outside the archive.")
    return storable_name(name)


class _Budget:
    """Bytes that have really come out, against the bytes that were sent."""

    def __init__(self, path: Path, limits: ArchiveLimits) -> None:
        self._left = path.stat().st_size * limits.max_ratio + _RATIO_SLACK
        self._limits = limits

    def read(self, file: IO[bytes]) -> bytes:
        data = file.read(self._limits.max_member_bytes + 1)
        self.spend(len(data))
        return _within(data, self._limits)

    def spend(self, count: int) -> None:
        self._left -= count
        if self._left < 0:
            raise ArchiveTooLarge(
                f"The archive expands to more than {self._limits.max_ratio:g} times its size."
            )


def _read_zip(path: Path, limits: ArchiveLimits, budget: _Budget) -> Iterator[Member]:
    with _open_zip(path) as archive:
        for position, (name, info) in enumerate(_zip_members(archive, limits)):

            def read(info: zipfile.ZipInfo = info) -> bytes:
                try:
                    with archive.open(info) as file:
                        return budget.read(file)
                except _BROKEN_MEMBER as error:
                    raise ImageUndecodable(f"Cannot be unpacked: {error}") from error

            yield Member(position, name, read)


def _open_zip(path: Path) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise ArchiveInvalid(f"The zip archive is damaged: {error}") from error


def _zip_members(
    archive: zipfile.ZipFile, limits: ArchiveLimits
) -> Iterator[tuple[str, zipfile.ZipInfo]]:
    listing = archive.infolist()
    if len(listing) > limits.max_members:
        raise _too_many(limits)
    for info in listing:
        name = checked_name(info.filename)
        if stat.S_ISLNK(info.external_attr >> 16):
            raise ArchiveUnsafePath(f"The member {name[:200]!r} is a link.")
        if info.flag_bits & 0x1:
            raise ArchiveInvalid("The zip archive is encrypted; send it without a password.")
        if not info.is_dir() and not is_litter(name):
            yield name, info


def _zip_member_count(path: Path) -> int:
    """From the closing record, without loading a directory that may list millions."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 65_557))
        tail = file.read()
    at = tail.rfind(b"PK\x05\x06")
    if not 0 <= at <= len(tail) - 22:
        return 0
    (count,) = struct.unpack_from("<H", tail, at + 10)
    large = tail.rfind(b"PK\x06\x06", 0, at)  # more than 65,534 stand in a record of their own
    if count == 0xFFFF and 0 <= large <= len(tail) - 40:
        (count,) = struct.unpack_from("<Q", tail, large + 32)
    return int(count)


class _Metered:
    """A decompressed stream that is paid for as it is read: headers and skipped members, too."""

    def __init__(self, file: IO[bytes], budget: _Budget) -> None:
        self._file = file
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._file.read(size)
        self._budget.spend(len(data))
        return data


def _decompressed(path: Path) -> IO[bytes]:
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    openers: dict[bytes, Any] = {
        b"\x1f\x8b": gzip.open,
        b"BZh": bz2.open,
        b"\xfd7zXZ\x00": lzma.open,
        _ZSTD: _open_zstd,
    }
    opener = next((openers[magic] for magic in openers if head.startswith(magic)), open)
    stream: IO[bytes] = opener(path, "rb")
    return stream


def _open_zstd(path: Path, _mode: str) -> IO[bytes]:
    decompressor = zstandard.ZstdDecompressor()  # refuses windows over 128 MiB by itself
    stream: IO[bytes] = decompressor.stream_reader(
        path.open("rb"), read_across_frames=True, closefd=True
    )
    return stream


def _read_tar(path: Path, limits: ArchiveLimits, budget: _Budget) -> Iterator[Member]:
    try:
        with (
            _decompressed(path) as stream,
            tarfile.open(fileobj=_Metered(stream, budget), mode="r|") as archive,  # type: ignore[call-overload]
        ):
            yield from _tar_members(archive, limits)
    except _BROKEN_TAR as error:
        raise _damaged_tar(error) from error


def _tar_members(archive: tarfile.TarFile, limits: ArchiveLimits) -> Iterator[Member]:
    position = 0
    for seen, info in enumerate(archive):
        archive.members = []  # type: ignore[attr-defined] # tarfile would keep every header it has seen
        if seen >= limits.max_members:
            raise _too_many(limits)
        name = checked_name(info.name)
        if info.isdir() or is_litter(name):
            continue
        if not info.isfile():
            raise ArchiveUnsafePath(f"The member {name[:200]!r} is a link or a device.")

        def read(info: tarfile.TarInfo = info) -> bytes:
            try:
                file = archive.extractfile(info)
                assert file is not None  # a regular file
                return _within(file.read(limits.max_member_bytes + 1), limits)
            except _BROKEN_TAR as error:
                raise _damaged_tar(error) from error

        yield Member(position, name, read)
        position += 1


def _within(data: bytes, limits: ArchiveLimits) -> bytes:
    if len(data) > limits.max_member_bytes:
        raise ImageTooLarge(f"Larger than {limits.max_member_bytes:,} bytes.")
    return data


def _damaged_tar(error: BaseException) -> ArchiveInvalid:
    return ArchiveInvalid(f"The tar archive is damaged: {error}")


def _too_many(limits: ArchiveLimits) -> ArchiveTooLarge:
    return ArchiveTooLarge(f"The archive has more than {limits.max_members:,} members.")
