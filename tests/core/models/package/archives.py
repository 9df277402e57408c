"""Model files for tests, valid and invalid."""

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

from tests.model_files import small_files, small_manifest


def parts(**manifest: Any) -> dict[str, bytes]:
    """The members of a valid file of three clusters, without the checksums."""
    values = small_manifest(3, model={"name": "cats", "version": 7}) | manifest
    return small_files(small_manifest(3)) | {"manifest.json": json.dumps(values).encode()}


def with_checksums(members: Mapping[str, bytes]) -> list[tuple[str, bytes]]:
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    return [*members.items(), ("checksums.json", json.dumps(sums).encode())]


def archive(
    members: Sequence[tuple[str | zipfile.ZipInfo, bytes]],
    compression: int = zipfile.ZIP_STORED,
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression) as file:
        for name, data in members:
            file.writestr(name, data)
    return out.getvalue()


def packed(members: Mapping[str, bytes]) -> bytes:
    """A file with valid checksums for any members."""
    return archive(with_checksums(members))
