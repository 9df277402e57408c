"""Archives for the tests, and their members."""

import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import zstandard

from app.core.datasets.archives import ArchiveLimits, read_members
from tests.images import tar_of, zip_of

MiB = 1024 * 1024
LIMITS = ArchiveLimits(
    max_members=100,
    max_ratio=100.0,
    max_member_bytes=MiB,
    max_name_bytes=64 * 1024,
    max_header_bytes=MiB,
    max_entry_bytes=4096,
    max_window_bytes=128 * MiB,
)
KINDS = ["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "tar.zst"]
Write = Callable[[bytes], Path]


def archive_of(kind: str, files: dict[str, bytes]) -> bytes:
    if kind == "zip":
        return zip_of(files)
    if kind == "tar.zst":
        return zstandard.compress(tar_of(files))
    return tar_of(files, compression=kind.partition(".")[2])


def contents(path: Path, limits: ArchiveLimits = LIMITS) -> list[tuple[int, str, bytes]]:
    return [(member.position, member.name, member.read()) for member in read_members(path, limits)]


def tar_with(info: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    return out.getvalue()
