"""Reads an archive in a separate process."""

from pathlib import Path

from app.core.datasets.archives import ArchiveLimits, check_archive, read_members
from app.core.platform.errors import ImageRejected, ServiceError
from app.core.platform.settings import Settings

LIMITS = ArchiveLimits.of(Settings(_env_file=None))


def check(path: str) -> str:
    """The error code of an upload that the request refuses, or `accepted`."""
    try:
        check_archive(Path(path), LIMITS)
    except ServiceError as error:
        return f"{error.code}: {error.detail}"
    return "accepted"


def read(path: str) -> list[str]:
    """The result of each member, and at the end the error of the archive."""
    found: list[str] = []
    try:
        for member in read_members(Path(path), LIMITS):
            try:
                found.append(f"{len(member.read())} bytes")
            except ImageRejected as error:
                found.append(f"{error.code}: {error.detail}")
    except ServiceError as error:
        found.append(f"{error.code}: {error.detail}")
    return found


def count(path: str) -> int:
    """The number of members that could be read."""
    return sum(1 for member in read_members(Path(path), LIMITS) if member.read())
