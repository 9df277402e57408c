"""Packs a version into one file while it is sent, without a copy on disk."""

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import Any, NamedTuple

from app.core.models.calibrations import as_dict
from app.core.models.files import changed, read_verified, unreadable
from app.core.models.package import CHECKSUMS_FILE, ENDING, MANIFEST_FILE
from app.core.platform.errors import StorageCorrupt
from app.core.platform.streams import ByteSink
from app.core.platform.tables import ModelVersion
from app.core.storage import Storage
from temi.calibration import Calibration

_BLOCK = 1024 * 1024
_DATE = (1980, 1, 1, 0, 0, 0)  # a version always gives the same bytes


class _Member(NamedTuple):
    name: str
    size: int
    blocks: Callable[[], Iterable[bytes]]


class PackedModel:
    """The constructor raises ModelIntegrity if the SHA-256 of a file does not match."""

    def __init__(
        self,
        storage: Storage,
        name: str,
        version: ModelVersion,
        labels: list[str],
        calibration: Calibration,
    ) -> None:
        self.filename = f"{name}-{version.version}{ENDING}"
        self._storage = storage
        self._version = version
        registered = json.loads(self._read(MANIFEST_FILE))
        self._manifest: dict[str, Any] = registered | {
            "model": {"name": name, "version": version.version},
            "calibration": as_dict(calibration),
            "clusters": [{"cluster_id": i, "label": label} for i, label in enumerate(labels)],
        }
        self.size = sum(len(block) for block in self.blocks())

    def blocks(self) -> Iterator[bytes]:
        sink = ByteSink()
        with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED) as archive:
            for member in self._members:
                entry = zipfile.ZipInfo(member.name, _DATE)
                entry.file_size = member.size
                with archive.open(entry, "w") as target:
                    for block in member.blocks():
                        target.write(block)
                        yield sink.take()
        yield sink.take()

    @cached_property
    def _members(self) -> list[_Member]:
        files = {name: sha for name, sha in self._version.files.items() if name != MANIFEST_FILE}
        manifest = _as_json(self._manifest)
        checksums = {MANIFEST_FILE: hashlib.sha256(manifest).hexdigest(), **files}
        texts = {MANIFEST_FILE: manifest, CHECKSUMS_FILE: _as_json(checksums)}
        return [
            *(_Member(name, len(text), partial(iter, [text])) for name, text in texts.items()),
            *(_Member(name, self._size(name), partial(self._stream, name)) for name in files),
        ]

    def _read(self, name: str) -> bytes:
        return read_verified(self._storage, self._version.folder, name, self._version.files[name])

    def _size(self, name: str) -> int:
        try:
            return self._storage.size(f"{self._version.folder}/{name}")
        except OSError as error:
            raise unreadable(name) from error

    def _stream(self, name: str) -> Iterator[bytes]:
        digest = hashlib.sha256()
        try:
            with self._storage.path(f"{self._version.folder}/{name}").open("rb") as file:
                while block := file.read(_BLOCK):
                    digest.update(block)
                    yield block
        except OSError as error:
            raise unreadable(name) from error
        except StorageCorrupt as error:
            raise changed(name) from error
        if digest.hexdigest() != self._version.files[name]:
            raise changed(name)


def _as_json(value: object) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()
