"""Small pictures, made once and kept beside the originals."""

import threading
from contextlib import suppress

from app.core.blobs import thumbnail_key
from app.core.runtime import Runtime
from app.core.storage import blob_key

_decoding = threading.BoundedSemaphore(2)  # a photo may take 150 MB while it is made small


def get_thumbnail(runtime: Runtime, tenant: str, sha256: str, size: int) -> bytes:
    """WebP of an image that the tenant has; ImageRejected or OSError if it cannot be read."""
    key = thumbnail_key(tenant, sha256, size)
    with suppress(FileNotFoundError):
        return runtime.storage.read(key)
    with _decoding:
        original = runtime.storage.read(blob_key(sha256))
        data = runtime.decoders.make_thumbnail(original, size)
    runtime.storage.write(key, data)
    return data
