"""Members of a source: files with a position, a name, and a function that reads them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

SYSTEM_FILES = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}


@dataclass(frozen=True)
class Member:
    position: int  # the same each time that the source is read
    name: str
    read: Callable[[], bytes]  # raises ImageRejected if only this member is bad
    label: str | None = None
    attributes: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Source:
    members: Iterator[Member]
    total: int = 0  # number of members; 0 if it is not known before reading all
    parallel_reads: int = 0  # 0: read each before you advance to the next
    reads_together: int = 1  # members that one of the threads reads after each other
    only_images: bool = False  # the user named every member as an image: none is skipped


def storable_name(name: str) -> str:
    """Replaces unpaired surrogates (bytes that are not UTF-8) and zeros, which databases refuse."""
    return name.encode("utf-8", "replace").decode().replace("\x00", "")


def cut_text(text: str, max_bytes: int) -> str:
    """The start of a text in at most this many bytes, without splitting a character."""
    return text.encode()[:max_bytes].decode(errors="ignore")


def is_system_file(name: str) -> bool:
    """Whether it is a metadata file of macOS or Windows."""
    parts = name.replace("\\", "/").split("/")
    return any(part in SYSTEM_FILES or part.startswith("._") for part in parts)


def is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts) or is_system_file(name)
