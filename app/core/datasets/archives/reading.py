"""Detects the kind of an archive and reads its members."""

from collections.abc import Iterator
from pathlib import Path

from app.core.datasets.archives.limits import ArchiveLimits
from app.core.datasets.archives.streams import MAGICS
from app.core.datasets.archives.tars import read_tar
from app.core.datasets.archives.zip_directory import ZipEnd, check_directory, read_end
from app.core.datasets.archives.zips import read_zip, zip_entries
from app.core.datasets.sources.base import Member, is_system_file
from app.core.platform.errors import ArchiveInvalid, DatasetEmpty

HEAD_BYTES = 512
_SMALL_DIRECTORY = 4 * 1024 * 1024  # bytes; a larger directory is checked by the job


def check_archive(path: Path, limits: ArchiveLimits) -> None:
    """The checks that are fast enough for the request; the job does the others."""
    if archive_kind(path) != "zip":
        return
    check_directory(_zip_end(path), limits)
    if has_small_directory(path) and not sum(
        1 for name, _ in zip_entries(path, limits) if not is_system_file(name)
    ):
        raise DatasetEmpty("The archive has no files.")


def has_small_directory(path: Path) -> bool:
    """Whether the request can check all entries of the zip."""
    return archive_kind(path) == "zip" and _zip_end(path).size <= _SMALL_DIRECTORY


def member_count(path: Path) -> int:
    """The number of members, with folders; 0 if it is not known before reading all."""
    return _zip_end(path).count if archive_kind(path) == "zip" else 0


def archive_kind(path: Path) -> str:
    with path.open("rb") as file:
        kind = _kind(file.read(HEAD_BYTES))
    if kind is None:
        raise ArchiveInvalid("The upload is neither a zip nor a tar archive.")
    return kind


def is_archive_head(head: bytes) -> bool:
    """Whether a file that starts with these bytes is an archive."""
    return _kind(head) is not None


def read_members(path: Path, limits: ArchiveLimits) -> Iterator[Member]:
    """The files of an archive, in order. Read a member before you advance to the next."""
    if archive_kind(path) == "zip":
        yield from read_zip(path, limits)
    else:
        yield from read_tar(path, limits)


def _kind(head: bytes) -> str | None:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(MAGICS) or head[257:262] == b"ustar":
        return "tar"
    return None


def _zip_end(path: Path) -> ZipEnd:
    with path.open("rb") as file:
        return read_end(file)
