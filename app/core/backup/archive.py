"""The file of a backup: a tar that is written and checked sequentially with bounded memory.

An index with their hashes follows every thousand members; the last member is the manifest, with the
hashes of the indexes. A truncated file has no manifest.
"""

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from app.core.platform.errors import BackupInvalid

FORMAT = 1
_MANIFEST = "manifest.json"
_INDEXES = "index/"
_GROUP = 1_000  # members per index
_BLOCK = 1024 * 1024
_INDEX_BYTES = 4 * 1024 * 1024
_MANIFEST_BYTES = 256 * 1024 * 1024


class Member(NamedTuple):
    name: str
    size: int
    file: IO[bytes]  # valid until the next member is read


class ArchiveWriter:
    def __init__(self, file: IO[bytes]) -> None:
        self._tar = tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
        self._group: dict[str, str] = {}
        self._indexes: list[str] = []

    def add(self, name: str, data: bytes) -> None:
        self.copy(name, len(data), io.BytesIO(data))

    def copy(self, name: str, size: int, source: IO[bytes]) -> None:
        self._group[name] = self._write(name, size, source)
        if len(self._group) == _GROUP:
            self._close_group()

    def finish(self, about: dict[str, Any]) -> None:
        self._close_group()
        about = {"format": FORMAT, **about, "indexes": self._indexes}
        signed = {"sha256": _digest(about), **about}
        self._write_json(_MANIFEST, signed)
        self._tar.close()

    def _close_group(self) -> None:
        if self._group:
            name = f"{_INDEXES}{len(self._indexes):08d}.json"
            self._indexes.append(self._write_json(name, self._group))
            self._group = {}

    def _write_json(self, name: str, value: dict[str, Any]) -> str:
        data = json.dumps(value, indent=1).encode()
        return self._write(name, len(data), io.BytesIO(data))

    def _write(self, name: str, size: int, source: IO[bytes]) -> str:
        info = tarfile.TarInfo(name)
        info.size = size
        hashing = _Hashing(source)
        self._tar.addfile(info, hashing)
        _forget_members(self._tar)
        return hashing.digest.hexdigest()


def read_members(path: Path) -> Iterator[Member]:
    """The members in order, without indexes and manifest. Call `verify` first."""
    for member in _members(path):
        if not member.name.startswith(_INDEXES) and member.name != _MANIFEST:
            yield member


def verify(path: Path) -> dict[str, Any]:
    """Checks the hash of every member; returns the manifest."""
    try:
        return _verify(path)
    except tarfile.TarError as error:
        raise BackupInvalid(f"The backup is damaged: {error}.") from error


def _verify(path: Path) -> dict[str, Any]:
    group: dict[str, str] = {}
    indexes: list[str] = []
    about: dict[str, Any] | None = None
    for member in _members(path):
        if about is not None:
            raise BackupInvalid(f"The backup has a member after its manifest: {member.name}.")
        if member.name == _MANIFEST:
            about = _check_manifest(member, indexes, group)
        elif member.name.startswith(_INDEXES):
            data = _read(member, _INDEX_BYTES)
            if _parse(member.name, data) != group:
                raise BackupInvalid(
                    f"The backup is damaged: the members before {member.name} do not match it."
                )
            indexes.append(hashlib.sha256(data).hexdigest())
            group = {}
        elif member.name in group:
            raise BackupInvalid(f"The backup has {member.name} twice.")
        else:
            group[member.name] = _hash(member)
    if about is None:
        raise BackupInvalid("The backup is truncated, or the file is not a backup.")
    return about


def _members(path: Path) -> Iterator[Member]:
    with tarfile.open(path, mode="r:") as tar:
        while (info := tar.next()) is not None:
            _forget_members(tar)
            file = tar.extractfile(info) if info.isreg() else None
            if file is None:
                raise BackupInvalid(f"The backup has a member {info.name!r} that is not a file.")
            yield Member(info.name, info.size, file)


def _forget_members(tar: tarfile.TarFile) -> None:
    """Else TarFile keeps all members in memory."""
    tar.members.clear()  # type: ignore[attr-defined]


def _check_manifest(member: Member, indexes: list[str], group: dict[str, str]) -> dict[str, Any]:
    about = _parse(member.name, _read(member, _MANIFEST_BYTES))
    if about.pop("sha256", None) != _digest(about):
        raise BackupInvalid("The backup is damaged: the hash of its manifest does not match.")
    if about["format"] != FORMAT:
        raise BackupInvalid(
            f"The backup has format {about['format']}; this release reads {FORMAT}."
        )
    if about["indexes"] != indexes or group:
        raise BackupInvalid("The backup is damaged: members are missing or changed.")
    return about


def _parse(name: str, data: bytes) -> dict[str, Any]:
    try:
        value = json.loads(data)
    except ValueError as error:
        raise BackupInvalid(f"{name} of the backup is damaged.") from error
    if not isinstance(value, dict):
        raise BackupInvalid(f"{name} of the backup is damaged.")
    return value


def _read(member: Member, max_bytes: int) -> bytes:
    if member.size > max_bytes:
        raise BackupInvalid(f"The backup is damaged: {member.name} is too large.")
    return member.file.read()


def _hash(member: Member) -> str:
    hashing = _Hashing(member.file)
    while hashing.read(_BLOCK):
        pass
    return hashing.digest.hexdigest()


def _digest(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class _Hashing:
    """Hashes a file while it is read."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        self.digest.update(data)
        return data
