"""Zip and tar uploads, member by member, with every count and size checked on real bytes.

No library that reads a whole header or directory at once gets an upload before its sizes are
checked: memory does not grow with the number of members or with what their headers claim.
"""

from app.core.datasets.archives.limits import ArchiveLimits
from app.core.datasets.archives.reading import (
    HEAD_BYTES,
    archive_kind,
    check_archive,
    is_archive_head,
    is_checked_at_once,
    member_count,
    read_members,
)

__all__ = [
    "HEAD_BYTES",
    "ArchiveLimits",
    "archive_kind",
    "check_archive",
    "is_archive_head",
    "is_checked_at_once",
    "member_count",
    "read_members",
]
