"""Folders of the server, as far as the settings open them."""

import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from app.core.activity import reporting
from app.core.errors import ImageTooLarge, InvalidRequest, SourceForbidden, SourceUnreadable
from app.core.sources.base import is_hidden

_FORBIDDEN = "This server reads images only from the folders in its TEMI_SOURCE_FOLDERS."


def check_folder(path: str, roots: Sequence[Path]) -> str:
    """The real path of a folder that may be read."""
    real = _allowed(path, roots)
    if not Path(real).is_dir():
        raise InvalidRequest.field("source.path", "is not a folder of the server")
    return real


def check_path(path: str, roots: Sequence[Path]) -> None:
    """Whether a file with this path could be allowed; where links lead is seen when it is read."""
    pure = os.path.normpath(path)
    if not any(Path(pure).is_relative_to(root.absolute()) for root in roots):
        raise SourceForbidden(_FORBIDDEN)


def list_folder(folder: str) -> Iterator[str]:
    """Names of the files below it, sorted by their bytes, with bounded memory."""
    names = sqlite3.connect("", isolation_level=None)  # sorts on disk what memory may not hold
    try:
        names.execute("CREATE TABLE names (name BLOB PRIMARY KEY) WITHOUT ROWID")
        names.execute("BEGIN")
        for name in reporting(_walk(folder)):
            names.execute("INSERT INTO names VALUES (?)", (os.fsencode(name),))
        for (name,) in names.execute("SELECT name FROM names ORDER BY name"):
            yield os.fsdecode(name)
    finally:
        names.close()


def read_file(path: str, roots: Sequence[Path], max_bytes: int) -> bytes:
    """The bytes of a regular file. Links are followed only as long as they stay inside."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe would block
    except (OSError, ValueError) as error:
        raise SourceUnreadable(f"Cannot be opened: {_reason(error)}") from error
    try:
        # Looked at after opening, and compared: nobody can change the path in between.
        real, opened = _allowed(path, roots), os.fstat(handle)
        if not os.path.samestat(opened, os.stat(real)):  # noqa: PTH116
            raise SourceUnreadable("It was replaced while it was read.")
        if not stat.S_ISREG(opened.st_mode):
            raise SourceUnreadable("Not a file.")
        with os.fdopen(handle, "rb", closefd=False) as file:
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise SourceUnreadable(f"Cannot be read: {_reason(error)}") from error
    finally:
        os.close(handle)
    if len(data) > max_bytes:
        raise ImageTooLarge(f"Larger than {max_bytes:,} bytes.")
    return data


def _allowed(path: str, roots: Sequence[Path]) -> str:
    if "\x00" in path or not os.path.isabs(path):  # noqa: PTH117
        raise SourceForbidden(_FORBIDDEN)
    real = os.path.realpath(path)
    if not any(Path(real).is_relative_to(os.path.realpath(root)) for root in roots):
        raise SourceForbidden(_FORBIDDEN)
    return real


def _walk(folder: str) -> Iterator[str]:
    waiting = [""]
    while waiting:
        below = waiting.pop()
        try:
            with os.scandir(Path(folder, below)) as entries:
                for entry in entries:
                    name = f"{below}/{entry.name}" if below else entry.name
                    if is_hidden(entry.name):
                        continue
                    if entry.is_dir(follow_symlinks=False):  # a link could lead in circles
                        waiting.append(name)
                    elif entry.is_file():
                        yield name
        except OSError as error:
            raise SourceUnreadable(f"The folder cannot be listed: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    """Without the path, which may be none of the reader's business."""
    return (error.strerror if isinstance(error, OSError) else None) or type(error).__name__
