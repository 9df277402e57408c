"""Thumbnails, created on first use and stored."""

from contextlib import suppress

from app.core.datasets.decoding.pool import DecoderPool
from app.core.platform.single_flight import SingleFlight
from app.core.storage import Storage
from app.core.storage.keys import blob_key, thumbnail_key

_running = SingleFlight[bytes]()


def get_thumbnail(
    storage: Storage, decoders: DecoderPool, tenant: str, sha256: str, size: int
) -> bytes:
    """The WebP thumbnail of an image of the tenant; raises ImageRejected or OSError."""
    key = thumbnail_key(tenant, sha256, size)
    with suppress(FileNotFoundError):
        return storage.read(key)
    # Several clients often request the same thumbnails at the same time.
    return _running.run(f"{id(storage)} {key}", lambda: _make(storage, decoders, key, sha256, size))


def _make(storage: Storage, decoders: DecoderPool, key: str, sha256: str, size: int) -> bytes:
    with suppress(FileNotFoundError):  # another call may have created it meanwhile
        return storage.read(key)
    data = decoders.make_thumbnail(storage.read(blob_key(sha256)), size)
    storage.write(key, data)
    return data
