"""Reads folders of the server that TEMI_SOURCE_FOLDERS allows."""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.core.datasets.sources.base import is_hidden
from app.core.platform.activity import reporting
from app.core.platform.errors import (
    ImageTooLarge,
    InvalidRequest,
    SourceForbidden,
    SourceUnreadable,
)

_FORBIDDEN = "This server reads images only from the folders in TEMI_SOURCE_FOLDERS."


def check_folder(path: str, roots: Sequence[Path]) -> str:
    """The real path of an allowed folder; raises SourceForbidden."""
    root, parts = _resolve(path, roots)
    real = Path(root, *parts)
    if not real.is_dir():
        raise InvalidRequest.field("source.path", f"{path[:200]!r} is not a folder of the server")
    return str(real)


def check_path(path: str, roots: Sequence[Path]) -> None:
    """Raises SourceForbidden for a path outside; links are checked when the file is read."""
    pure = os.path.normpath(path)
    if not any(Path(pure).is_relative_to(root.absolute()) for root in roots):
        raise SourceForbidden(_FORBIDDEN)


def list_folder(folder: str, roots: Sequence[Path]) -> Iterator[str]:
    """Names of all files in a folder, sorted by bytes, with bounded memory."""
    root, start = _resolve(folder, roots)
    names = sqlite3.connect("", isolation_level=None)  # sorts on disk, with bounded memory
    try:
        names.execute("CREATE TABLE names (name BLOB PRIMARY KEY) WITHOUT ROWID")
        names.execute("BEGIN")
        for name in reporting(_walk(root, start)):
            names.execute("INSERT INTO names VALUES (?)", (os.fsencode(name),))
        for (name,) in names.execute("SELECT name FROM names ORDER BY name"):
            yield os.fsdecode(name)
    finally:
        names.close()


def read_file(path: str, roots: Sequence[Path], max_bytes: int) -> bytes:
    """The bytes of a regular file. Links that leave the allowed folders are refused."""
    root, parts = _resolve(path, roots)
    try:
        with _opened(root, parts, os.O_NONBLOCK) as handle:  # a pipe would block
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise SourceUnreadable("It is not a regular file.")
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(max_bytes + 1)
    except OSError as error:
        raise SourceUnreadable(f"It cannot be read: {_reason(error)}") from error
    if len(data) > max_bytes:
        raise ImageTooLarge(f"Larger than {max_bytes:,} bytes (TEMI_MAX_IMAGE_BYTES).")
    return data


@contextmanager
def _opened(root: str, parts: Sequence[str], flags: int) -> Iterator[int]:
    """Opens a path below a root without following links. Each part is opened relative to its open
    parent folder, so replacing a part of the path meanwhile has no effect."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for number, part in enumerate(parts, start=1):
            kind = flags if number == len(parts) else os.O_DIRECTORY
            mode = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | kind
            inner = os.open(part, mode, dir_fd=handle)
            os.close(handle)
            handle = inner
        yield handle
    finally:
        os.close(handle)


def _resolve(path: str, roots: Sequence[Path]) -> tuple[str, tuple[str, ...]]:
    """Resolves the links of a path; returns its root and the parts below it."""
    if "\x00" in path or not os.path.isabs(path):  # noqa: PTH117
        raise SourceForbidden(_FORBIDDEN)
    real = Path(os.path.realpath(path))
    for root in map(os.path.realpath, roots):
        if real.is_relative_to(root):
            return str(root), real.relative_to(root).parts
    raise SourceForbidden(_FORBIDDEN)


def _walk(root: str, start: Sequence[str]) -> Iterator[str]:
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        below = waiting.pop()
        try:
            with (
                _opened(root, (*start, *below), os.O_DIRECTORY) as handle,
                os.scandir(handle) as entries,
            ):
                for entry in entries:
                    if is_hidden(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):  # a link could be a cycle
                        waiting.append((*below, entry.name))
                    elif entry.is_file():
                        yield "/".join((*below, entry.name))
        except OSError as error:
            raise SourceUnreadable(f"The folder cannot be listed: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """The reason without the path, which the user may not be allowed to see."""
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
