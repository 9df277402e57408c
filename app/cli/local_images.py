"""The images of a local folder, zip or tar, in the order in which an upload stores them."""

import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.core.datasets.archives import ArchiveLimits, archive_kind, member_count, read_members
from app.core.datasets.images import cut_square
from app.core.datasets.rows import folder_label
from app.core.datasets.sources.base import Member, storable_name
from app.core.datasets.sources.manifests import Lookup, manifest_format, read_entries
from app.core.platform.errors import (
    ArchiveInvalid,
    ImageRejected,
    ManifestInvalid,
    SourceUnreadable,
)
from app.core.platform.settings import Settings

if TYPE_CHECKING:
    from temi.backbones.cropping import CentralSquare
    from temi.backbones.preprocessing import Square
    from temi_client import LabelsFrom

_NO_MANIFEST = "There is no manifest.csv or manifest.jsonl at the root."


class LocalImages:
    """Images that are decoded on demand; unreadable files are recorded and skipped."""

    def __init__(
        self, source: Path, settings: Settings, labels_from: "LabelsFrom", leave_out: Path
    ) -> None:
        self._source = source
        self._limits = ArchiveLimits.of(settings)
        self._labels_from = labels_from
        self._leave_out = leave_out.resolve()
        self._read: list[Member] = []  # without their bytes
        self.rejected: dict[int, tuple[str, str, str]] = {}  # name, code, detail
        self.total = self._count()

    def readers(self, square: "CentralSquare") -> "Iterator[Callable[[], Square]]":
        """Yields a function per image that decodes the part of it that the backbone sees."""
        for member in self._labeled():
            self._read.append(member)
            if self._source.is_dir():
                yield partial(_decode, member, square)
            else:  # the next member is read after this one
                yield partial(_decode, _loaded(member), square)

    def reject(self, position: int, error: Exception) -> None:
        if not isinstance(error, ImageRejected):
            raise error
        self.rejected[position] = (self._read[position].name, error.code, error.detail)

    @property
    def readable(self) -> list[Member]:
        """The images with a row of features; complete after all were decoded."""
        return [one for at, one in enumerate(self._read) if at not in self.rejected]

    def _count(self) -> int:
        """The number of files, with folders of a zip; 0 if it is not known before reading all."""
        if self._source.is_dir():
            return sum(1 for _ in self._members())
        return member_count(self._source)

    def _labeled(self) -> Iterator[Member]:
        if self._labels_from == "manifest":
            yield from self._with_manifest()
            return
        for member in self._members():
            by_folder = self._labels_from == "folder"
            label = folder_label(member.name) if by_folder else None
            yield Member(member.position, member.name, member.read, label)

    def _with_manifest(self) -> Iterator[Member]:
        lookup = self._lookup()
        try:
            for member in self._members():
                if manifest_format(member.name) is None:
                    label, _ = lookup.find(member.name)
                    yield Member(member.position, member.name, member.read, label)
        finally:
            lookup.close()

    def _lookup(self) -> Lookup:
        for member in self._members():
            if format_ := manifest_format(member.name):
                return Lookup(read_entries(io.BytesIO(member.read()), format_))
        raise ManifestInvalid(_NO_MANIFEST)

    def _members(self) -> Iterator[Member]:
        if not self._source.is_dir():
            yield from read_members(self._source, self._limits)
            return
        for position, path in enumerate(self._files()):
            name = storable_name(path.relative_to(self._source).as_posix())
            yield Member(position, name, partial(_read_file, path))

    def _files(self) -> Iterator[Path]:
        for path in sorted(self._source.rglob("*")):
            hidden = any(part.startswith(".") for part in path.relative_to(self._source).parts)
            if path.is_file() and not hidden and path.resolve() != self._leave_out:
                yield path


def is_local_source(path: Path) -> bool:
    """Returns whether it is a folder, a zip or a tar."""
    if path.is_dir():
        return True
    try:
        return bool(archive_kind(path))
    except ArchiveInvalid:
        return False


def _loaded(member: Member) -> Member:
    """Reads the member now; an error is raised when it is decoded."""
    try:
        data = member.read()
    except ImageRejected as error:
        return Member(member.position, member.name, partial(_raise, error))
    return Member(member.position, member.name, lambda: data)


def _raise(error: Exception) -> bytes:
    raise error


def _decode(member: Member, square: "CentralSquare") -> "Square":
    return cut_square(member.read(), square)


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceUnreadable(str(error)) from error
