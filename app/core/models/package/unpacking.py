"""Unpacks a model file into the storage, and checks every part before it is registered."""

import hashlib
import os
import re
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from app.core.models.backbones import check_backbone_name
from app.core.models.files import BACKBONE_FILE, MODEL_FILE, NOVELTY_FILE
from app.core.models.package import CHECKSUMS_FILE, MANIFEST_FILE
from app.core.models.package.manifest import Manifest, parse_manifest
from app.core.models.package.tensors import check_backbone, check_head, check_novelty
from app.core.models.package.untrusted_json import parse_json
from app.core.platform.errors import ModelFileInvalid
from app.core.platform.settings import MiB
from app.core.storage import Storage
from temi.backbones.catalog import list_backbones

_REQUIRED = {MANIFEST_FILE, CHECKSUMS_FILE, MODEL_FILE}
_MAX_BYTES = {MANIFEST_FILE: 16 * MiB, CHECKSUMS_FILE: 1 * MiB, MODEL_FILE: 1024 * MiB}
_DIRECTORY_BYTES = 4096  # five entries take a few hundred
_ENCRYPTED = 0x1 | 0x40
_BLOCK = 1024 * 1024
_SHA256 = re.compile(r"[0-9a-f]{64}")
_END, _END_64, _LOCATOR_64 = 22, 56, 20  # sizes of the end records of a zip
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    ValueError,
    EOFError,
    struct.error,
)


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What the registry stores; the files are in the storage."""

    name: str | None  # in the exporting service
    manifest: dict[str, Any]
    files: dict[str, str]  # name -> sha256
    bytes: int  # of all files


def unpack(file: IO[bytes], storage: Storage, folder: str, weights_dir: Path | None) -> Unpacked:
    """On any error the caller deletes the folder."""
    try:
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            return _Unpacking(archive, storage, folder).run(weights_dir)
    except _ZIP_ERRORS as error:
        raise ModelFileInvalid(f"The file is damaged or not a model file: {error}") from error


class _Unpacking:
    def __init__(self, archive: zipfile.ZipFile, storage: Storage, folder: str) -> None:
        self._archive = archive
        self._storage = storage
        self._folder = folder
        self._members = _check_members(archive)
        self._checksums = self._read_checksums()

    def run(self, weights_dir: Path | None) -> Unpacked:
        manifest, values = parse_manifest(self._store(MANIFEST_FILE).read_bytes())
        _check_backbone_available(manifest, weights_dir)
        check_head(self._store(MODEL_FILE), manifest)
        if BACKBONE_FILE in self._members:
            check_backbone(self._store(BACKBONE_FILE), manifest)
        if NOVELTY_FILE in self._members:
            check_novelty(self._store(NOVELTY_FILE), manifest)
        return Unpacked(
            name=manifest.model.name if manifest.model else None,
            manifest=values,
            files=self._checksums,
            bytes=sum(self._members[name].file_size for name in self._checksums),
        )

    def _read_checksums(self) -> dict[str, str]:
        found = parse_json(CHECKSUMS_FILE, self._archive.read(CHECKSUMS_FILE))
        if found.keys() != self._members.keys() - {CHECKSUMS_FILE}:
            raise ModelFileInvalid(f"{CHECKSUMS_FILE} must list each other file once.")
        for name, sha256 in found.items():
            if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
                raise ModelFileInvalid(f"{CHECKSUMS_FILE}: {name} has no hexadecimal SHA-256.")
        return found

    def _store(self, name: str) -> Path:
        """Stores a member if its SHA-256 matches; returns its path."""
        key, digest = f"{self._folder}/{name}", hashlib.sha256()
        with self._storage.writing(key) as target, self._archive.open(name) as source:
            while block := source.read(_BLOCK):
                digest.update(block)
                target.write(block)
            if digest.hexdigest() != self._checksums[name]:
                raise ModelFileInvalid(f"The SHA-256 of {name} does not match {CHECKSUMS_FILE}.")
        return self._storage.path(key)


def _check_directory(file: IO[bytes]) -> None:
    """Checks the size of the directory, which the library would read whole."""
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _END - _LOCATOR_64 - _END_64))
    tail = file.read().rjust(_END + _LOCATOR_64 + _END_64, b"\x00")
    end, locator = tail[-_END:], tail[-_END - _LOCATOR_64 : -_END]
    if not end.startswith(b"PK\x05\x06"):
        raise ModelFileInvalid("The file is truncated or not a model file.")
    (listed,) = struct.unpack_from("<L", end, 12)
    if locator.startswith(b"PK\x06\x07"):  # zip64
        if not tail.startswith(b"PK\x06\x06"):  # else the library uses the first record
            raise ModelFileInvalid("The file is damaged: its zip64 end record is missing.")
        (listed,) = struct.unpack_from("<Q", tail, 40)
    if listed > _DIRECTORY_BYTES:
        raise ModelFileInvalid("The file lists more members than a model has.")


def _check_members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    found: dict[str, zipfile.ZipInfo] = {}
    for info in archive.infolist():
        quoted = repr(info.filename[:100])
        if info.filename not in _REQUIRED | {BACKBONE_FILE, NOVELTY_FILE}:
            raise ModelFileInvalid(f"The file has a member {quoted}, which is not part of a model.")
        if info.filename in found:
            raise ModelFileInvalid(f"The file has the member {quoted} twice.")
        if info.flag_bits & _ENCRYPTED:
            raise ModelFileInvalid("The file is encrypted; send it without a password.")
        if info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size:
            raise ModelFileInvalid(f"{quoted} is compressed; members must be stored.")
        if info.file_size > _MAX_BYTES.get(info.filename, info.file_size):
            raise ModelFileInvalid(f"{quoted} is larger than {_MAX_BYTES[info.filename]:,} bytes.")
        found[info.filename] = info
    if missing := sorted(_REQUIRED - found.keys()):
        raise ModelFileInvalid(f"The file has no {', '.join(missing)}.")
    return found


def _check_backbone_available(manifest: Manifest, weights_dir: Path | None) -> None:
    check_backbone_name(manifest.backbone, weights_dir)
    dims = {info.name: info.dim for info in list_backbones(weights_dir)}
    if dims.get(manifest.backbone, manifest.feature_dim) != manifest.feature_dim:
        raise ModelFileInvalid(
            f"{manifest.backbone} has {dims[manifest.backbone]} features per image, "
            f"but the model needs {manifest.feature_dim}."
        )
