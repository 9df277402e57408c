"""What every source gives: files with a position, a name, and a way to read them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

LITTER = {"__MACOSX", ".DS_Store", "Thumbs.db", "desktop.ini"}


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
    total: int = 0  # members to expect; 0 if only reading them all would tell
    parallel_reads: int = 0  # 0: each must be read before the next is asked for


def storable_name(name: str) -> str:
    """Names may hold bytes that are no UTF-8, as lone surrogates; no database takes those."""
    return name.encode("utf-8", "replace").decode().replace("\x00", "")


def cut_text(text: str, max_bytes: int) -> str:
    """The start of a text, in no more bytes than that and in whole characters."""
    return text.encode()[:max_bytes].decode(errors="ignore")


def is_litter(name: str) -> bool:
    """What file managers leave behind."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return any(part in LITTER or part.startswith("._") for part in parts)


def is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in PurePosixPath(name).parts) or is_litter(name)
