"""Reads files of a version and checks their SHA-256."""

import hashlib

from app.core.platform.errors import ModelIntegrity, StorageCorrupt
from app.core.storage import Storage


def read_verified(storage: Storage, folder: str, name: str, sha256: str) -> bytes:
    """The bytes of a file; raises ModelIntegrity if they are not those that were registered."""
    try:
        data = storage.read(f"{folder}/{name}")
    except OSError as error:
        raise unreadable(name) from error
    except StorageCorrupt as error:
        raise changed(name) from error
    if hashlib.sha256(data).hexdigest() != sha256:
        raise changed(name)
    return data


def unreadable(name: str) -> ModelIntegrity:
    return ModelIntegrity(f"The model's file {name} cannot be read.")


def changed(name: str) -> ModelIntegrity:
    return ModelIntegrity(
        f"The model's file {name} was changed (its SHA-256 does not match) and is not served. "
        "Restore it from a backup or run the job again."
    )
