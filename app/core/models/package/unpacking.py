"""One file to a version's files: every part is checked before anything is registered."""

import hashlib
import os
import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.core.models.backbones import check_backbone_name
from app.core.models.files import BACKBONE_FILE, MODEL_FILE
from app.core.models.package import CHECKSUMS_FILE, MANIFEST_FILE
from app.core.models.package.manifest import Manifest, parse_manifest
from app.core.models.package.tensors import check_backbone, check_head
from app.core.models.package.untrusted_json import parse_json
from app.core.platform.errors import ModelFileInvalid
from app.core.platform.settings import MiB
from app.core.storage import Storage
from temi.backbones.catalog import list_backbones

_NEEDED = {MANIFEST_FILE, CHECKSUMS_FILE, MODEL_FILE}
_LARGEST = {MANIFEST_FILE: 16 * MiB, CHECKSUMS_FILE: 1 * MiB, MODEL_FILE: 1024 * MiB}
_DIRECTORY_BYTES = 4096  # four entries take a few hundred
_ENCRYPTED = 0x1 | 0x40
_BLOCK = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_END, _END_64, _LOCATOR_64 = 22, 56, 20  # bytes of the closing records of a zip
_BROKEN = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    struct.error,
)


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What the registry is to know. The files are in their folder."""

    name: str | None  # under which it was exported
    manifest: dict[str, Any]
    files: dict[str, str]  # name -> sha256
    bytes: int  # of all files


def unpack(file: IO[bytes], storage: Storage, folder: str, weights_dir: Path | None) -> Unpacked:
    """On any error the folder is to be dropped by whoever named it."""
    try:
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            return _Unpacking(archive, storage, folder).run(weights_dir)
    except _BROKEN as error:
        raise ModelFileInvalid(f"The file is damaged or is no model: {error}") from error


class _Unpacking:
    def __init__(self, archive: zipfile.ZipFile, storage: Storage, folder: str) -> None:
        self._archive = archive
        self._storage = storage
        self._folder = folder
        self._members = _check_members(archive)
        self._checksums = self._read_checksums()

    def run(self, weights_dir: Path | None) -> Unpacked:
        manifest, values = parse_manifest(self._take(MANIFEST_FILE))
        _check_backbone_is_here(manifest, weights_dir)
        check_head(self._store(MODEL_FILE), manifest)
        if BACKBONE_FILE in self._members:
            check_backbone(self._store(BACKBONE_FILE), manifest)
        return Unpacked(
            name=manifest.model.name if manifest.model else None,
            manifest=values,
            files=self._checksums,
            bytes=sum(self._members[name].file_size for name in self._checksums),
        )

    def _read_checksums(self) -> dict[str, str]:
        found = parse_json(CHECKSUMS_FILE, self._archive.read(CHECKSUMS_FILE))
        if found.keys() != self._members.keys() - {CHECKSUMS_FILE}:
            raise ModelFileInvalid(f"{CHECKSUMS_FILE} must name the other files, each once.")
        for name, sha256 in found.items():
            if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
                raise ModelFileInvalid(f"{CHECKSUMS_FILE}: {name} has no SHA-256 in hexadecimals.")
        return found

    def _take(self, name: str) -> bytes:
        return self._store(name).read_bytes()

    def _store(self, name: str) -> Path:
        """Under its key in the storage if it is what the checksums say, else not at all."""
        key, digest = f"{self._folder}/{name}", hashlib.sha256()
        with self._storage.writing(key) as target, self._archive.open(name) as source:
            while block := source.read(_BLOCK):
                digest.update(block)
                target.write(block)
            if digest.hexdigest() != self._checksums[name]:
                raise ModelFileInvalid(f"{name} is not what {CHECKSUMS_FILE} says.")
        return self._storage.path(key)


def _check_directory(file: IO[bytes]) -> None:
    """The library reads the list of members at once, however long a forged record says it is."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END - _LOCATOR_64 - _END_64))
    tail = file.read().rjust(_END + _LOCATOR_64 + _END_64, b"\x00")
    end, locator = tail[-_END:], tail[-_END - _LOCATOR_64 : -_END]
    if not end.startswith(b"PK\x05\x06"):
        raise ModelFileInvalid("The file is cut short, or it is no model.")
    (listed,) = struct.unpack_from("<L", end, 12)
    if locator.startswith(b"PK\x06\x07"):  # then another record counts, for large files
        if not tail.startswith(b"PK\x06\x06"):  # without it the library would take the first one
            raise ModelFileInvalid("The file is damaged: the record of its size is missing.")
        (listed,) = struct.unpack_from("<Q", tail, 40)
    if listed > _DIRECTORY_BYTES:
        raise ModelFileInvalid("The file lists more members than a model has.")


def _check_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        shown = repr(info.filename[:100])
        if info.filename not in _NEEDED | {BACKBONE_FILE}:
            raise ModelFileInvalid(f"The file holds {shown}, which is no part of a model.")
        if info.filename in found:
            raise ModelFileInvalid(f"The file holds {shown} twice.")
        if info.flag_bits & _ENCRYPTED:
            raise ModelFileInvalid("The file is encrypted.")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileInvalid(f"{shown} is compressed; members must be stored as they are.")
        if info.file_size > _LARGEST.get(info.filename, info.file_size):
            raise ModelFileInvalid(f"{shown} is larger than {_LARGEST[info.filename]:,} bytes.")
        found[info.filename] = info
    if missing := sorted(_NEEDED - found.keys()):
        raise ModelFileInvalid(f"The file lacks {', '.join(missing)}.")
    return found


def _check_backbone_is_here(manifest: Manifest, weights_dir: Path | None) -> None:
    check_backbone_name(manifest.backbone, weights_dir)
    dims = {info.name: info.dim for info in list_backbones(weights_dir)}
    if dims.get(manifest.backbone, manifest.feature_dim) != manifest.feature_dim:
        raise ModelFileInvalid(
            f"{manifest.backbone} gives {dims[manifest.backbone]} features an image, "
            f"and the model wants {manifest.feature_dim}."
        )
