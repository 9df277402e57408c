"""Reads zip and tar uploads member by member, and checks every count and size on real bytes.

Sizes are checked before a library that reads a whole header or directory gets the upload: memory
does not grow with the number of members or with what their headers claim.
"""

from app.core.datasets.archives.limits import ArchiveLimits
from app.core.datasets.archives.reading import (
    HEAD_BYTES,
    archive_kind,
    check_archive,
    has_small_directory,
    is_archive_head,
    member_count,
    read_members,
)

__all__ = [
    "HEAD_BYTES",
    "ArchiveLimits",
    "archive_kind",
    "check_archive",
    "has_small_directory",
    "is_archive_head",
    "member_count",
    "read_members",
]
