"""Which kind of archive a file is, and its members."""

from collections.abc import Iterator
from pathlib import Path

from app.core.datasets.archives.limits import ArchiveLimits
from app.core.datasets.archives.streams import MAGICS
from app.core.datasets.archives.tars import read_tar
from app.core.datasets.archives.zip_directory import ZipEnd, check_directory, read_end
from app.core.datasets.archives.zips import read_zip, zip_entries
from app.core.datasets.sources.base import Member
from app.core.platform.errors import ArchiveInvalid, DatasetEmpty

HEAD_BYTES = 512
_CHECK_AT_ONCE = 4 * 1024 * 1024  # bytes of a directory; a longer one is checked while it is read


def check_archive(path: Path, limits: ArchiveLimits) -> None:
    """What can be known at once about an upload, so that the sender hears of it in the answer."""
    if archive_kind(path) != "zip":
        return
    check_directory(_zip_end(path), limits)
    if is_checked_at_once(path) and not sum(1 for _ in zip_entries(path, limits)):
        raise DatasetEmpty("The archive holds no files.")


def is_checked_at_once(path: Path) -> bool:
    """Whether its members are few enough to be looked at while the sender waits."""
    return archive_kind(path) == "zip" and _zip_end(path).size <= _CHECK_AT_ONCE


def member_count(path: Path) -> int:
    """How many members to expect, folders included; 0 if only reading it all would tell."""
    return _zip_end(path).count if archive_kind(path) == "zip" else 0


def archive_kind(path: Path) -> str:
    with path.open("rb") as file:
        kind = _kind(file.read(HEAD_BYTES))
    if kind is None:
        raise ArchiveInvalid("The upload is neither a zip nor a tar archive.")
    return kind


def is_archive_head(head: bytes) -> bool:
    """Whether a file that starts like this is taken as an archive."""
    return _kind(head) is not None


def read_members(path: Path, limits: ArchiveLimits) -> Iterator[Member]:
    """The files in an archive, in order. A member must be read before the next is asked for."""
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
