"""Writes zip archives member by member. The same rows give the same bytes."""

import shutil
import zipfile
from typing import IO

_DATE = (1980, 1, 1, 0, 0, 0)
_READABLE = 0o644 << 16


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
    return zipfile.ZipFile(file, "w")


def add_image(archive: zipfile.ZipFile, name: str, image: IO[bytes], size: int) -> None:
    """Adds an image without compression: it is compressed already."""
    _add(archive, name, image, size, zipfile.ZIP_STORED)


def add_file(archive: zipfile.ZipFile, name: str, file: IO[bytes]) -> None:
    """Adds a whole file, compressed."""
    size = file.seek(0, 2)
    file.seek(0)
    _add(archive, name, file, size, zipfile.ZIP_DEFLATED)


def add_text(archive: zipfile.ZipFile, name: str, text: str) -> None:
    archive.writestr(_member(name, zipfile.ZIP_DEFLATED), text.encode())


def _add(archive: zipfile.ZipFile, name: str, file: IO[bytes], size: int, compression: int) -> None:
    member = _member(name, compression)
    member.file_size = size
    with archive.open(member, "w") as target:
        shutil.copyfileobj(file, target, 1024 * 1024)


def _member(name: str, compression: int) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name, _DATE)
    member.compress_type = compression
    member.external_attr = _READABLE
    return member
