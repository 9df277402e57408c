"""What is read is what was written, or it is not given out."""

import hashlib

from app.core.platform.errors import StorageCorrupt


def check_bytes(key: str, data: bytes, sha256: str | None) -> None:
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        raise corrupt(key)


def corrupt(key: str) -> StorageCorrupt:
    return StorageCorrupt(
        f"The file {key} in the storage is not what was written; it is not used. "
        "Restore it from a backup."
    )
