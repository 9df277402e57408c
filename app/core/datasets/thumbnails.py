"""Thumbnails, made once and stored beside the originals."""

from contextlib import suppress

from app.core.datasets.decoding.pool import DecoderPool
from app.core.platform.single_flight import SingleFlight
from app.core.storage import Storage
from app.core.storage.keys import blob_key, thumbnail_key

_being_made = SingleFlight[bytes]()


def get_thumbnail(
    storage: Storage, decoders: DecoderPool, tenant: str, sha256: str, size: int
) -> bytes:
    """WebP of an image that the tenant has; ImageRejected or OSError if it cannot be read."""
    key = thumbnail_key(tenant, sha256, size)
    with suppress(FileNotFoundError):
        return storage.read(key)
    # A page of thumbnails is often asked for by several clients at the same time.
    return _being_made.run(
        f"{id(storage)} {key}", lambda: _make(storage, decoders, key, sha256, size)
    )


def _make(storage: Storage, decoders: DecoderPool, key: str, sha256: str, size: int) -> bytes:
    with suppress(FileNotFoundError):  # another call may have made it just before this one
        return storage.read(key)
    data = decoders.make_thumbnail(storage.read(blob_key(sha256)), size)
    storage.write(key, data)
    return data
