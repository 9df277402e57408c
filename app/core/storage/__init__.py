"""Where bytes are kept: images, artefacts, models."""

from app.core.settings import Settings
from app.core.storage.base import Batch, Storage, StoredFile, blob_key, raise_if_full
from app.core.storage.local import LocalStorage


def open_storage(settings: Settings) -> Storage:
    return LocalStorage(settings.blob_dir)


__all__ = [
    "Batch",
    "LocalStorage",
    "Storage",
    "StoredFile",
    "blob_key",
    "open_storage",
    "raise_if_full",
]
