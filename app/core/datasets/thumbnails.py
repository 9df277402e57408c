"""Small pictures, made once and kept beside the originals."""

from contextlib import suppress

from app.core.platform.single_flight import SingleFlight
from app.core.runtime import Runtime
from app.core.storage import blob_key
from app.core.storage.blobs import thumbnail_key

_being_made = SingleFlight[bytes]()


def get_thumbnail(runtime: Runtime, tenant: str, sha256: str, size: int) -> bytes:
    """WebP of an image that the tenant has; ImageRejected or OSError if it cannot be read."""
    key = thumbnail_key(tenant, sha256, size)
    with suppress(FileNotFoundError):
        return runtime.storage.read(key)
    # A page of thumbnails is often asked for by several clients at the same time.
    place = f"{runtime.settings.local_dir} {key}"
    return _being_made.run(place, lambda: _make(runtime, key, sha256, size))


def _make(runtime: Runtime, key: str, sha256: str, size: int) -> bytes:
    with suppress(FileNotFoundError):  # another call may have made it just before this one
        return runtime.storage.read(key)
    data = runtime.decoders.make_thumbnail(runtime.storage.read(blob_key(sha256)), size)
    runtime.storage.write(key, data)
    return data
