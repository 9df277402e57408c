"""Limits of archives, and the count of the bytes that were unpacked."""

import io
import re
from collections.abc import Iterable
from dataclasses import dataclass

from app.core.datasets.sources.base import storable_name
from app.core.platform.errors import (
    ArchiveInvalid,
    ArchiveTooLarge,
    ArchiveUnsafePath,
    ImageTooLarge,
)
from app.core.platform.settings import Settings

BLOCK = 64 * 1024  # bytes that are unpacked at a time
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_RATIO_SLACK = 16 * 1024 * 1024  # small archives may expand further than the ratio allows


@dataclass(frozen=True, kw_only=True)
class ArchiveLimits:
    """Settings of the same names; app/core/platform/settings/ingest.py explains the defaults."""

    max_members: int
    max_ratio: float
    max_member_bytes: int
    max_name_bytes: int
    max_header_bytes: int  # of a tar, before one member
    max_entry_bytes: int  # of a zip's directory, per member
    max_window_bytes: int  # memory of an xz or zstd decompressor

    @classmethod
    def of(cls, settings: Settings) -> "ArchiveLimits":
        return cls(
            max_members=settings.max_archive_members,
            max_ratio=settings.max_archive_ratio,
            max_member_bytes=settings.max_image_bytes,
            max_name_bytes=settings.max_archive_name_bytes,
            max_header_bytes=settings.max_archive_header_bytes,
            max_entry_bytes=settings.max_archive_entry_bytes,
            max_window_bytes=settings.max_archive_window_bytes,
        )


class Budget:
    """Counts the unpacked bytes against the size of the archive."""

    def __init__(self, archive_bytes: int, limits: ArchiveLimits) -> None:
        self._left = archive_bytes * limits.max_ratio + _RATIO_SLACK
        self._limits = limits

    def consume(self, count: int) -> None:
        self.check(count)
        self._left -= count

    def check(self, count: int) -> None:
        """Raises ArchiveTooLarge if fewer bytes are left; for sizes that a header claims."""
        if count > self._left:
            raise ArchiveTooLarge(
                f"The archive expands to more than {self._limits.max_ratio:g} times its size "
                "(TEMI_MAX_ARCHIVE_RATIO)."
            )


def read_bounded(blocks: Iterable[bytes], limits: ArchiveLimits) -> bytes:
    """The content of one member; raises ImageTooLarge above the limit."""
    content = io.BytesIO()  # getvalue() shares its buffer, without a copy
    for block in blocks:
        content.write(block)
        if content.tell() > limits.max_member_bytes:
            raise member_too_large(limits)
    return content.getvalue()


def checked_name(name: str, limits: ArchiveLimits) -> str:
    if len(name.encode(errors="replace")) > limits.max_name_bytes:
        raise ArchiveTooLarge(
            f"The name of a member is longer than {limits.max_name_bytes:,} bytes "
            "(TEMI_MAX_ARCHIVE_NAME_BYTES)."
        )
    path = name.replace("\\", "/")
    if path.startswith("/") or ".." in path.split("/") or _DRIVE.match(name):
        raise ArchiveUnsafePath(f"The member {quoted(name)} points outside the archive.")
    return storable_name(name)


def quoted(name: str) -> str:
    """The start of a name in quotes, for error messages."""
    return repr(storable_name(name[:200]))


def member_too_large(limits: ArchiveLimits) -> ImageTooLarge:
    return ImageTooLarge(f"Larger than {limits.max_member_bytes:,} bytes.")


def too_many_members(limits: ArchiveLimits) -> ArchiveTooLarge:
    return ArchiveTooLarge(f"The archive has more than {limits.max_members:,} members.")


def damaged(kind: str, reason: object) -> ArchiveInvalid:
    return ArchiveInvalid(f"The {kind} archive is damaged: {str(reason)[:200]}")
