"""Reads buckets of an S3-compatible store that TEMI_SOURCE_BUCKETS allows."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError

from app.core.datasets.sources.base import is_hidden
from app.core.platform.errors import ImageTooLarge, SourceForbidden, SourceUnreadable
from app.core.platform.settings import Settings
from app.core.storage.buckets import (
    ObjectUrl,
    open_bucket,
    parse_object_url,
    reason_of,
)

if TYPE_CHECKING:
    from obstore.store import S3Store

_FORBIDDEN = "This server reads images only from the buckets in TEMI_SOURCE_BUCKETS."
_FAILURES = (BaseError, OSError)  # a missing object raises FileNotFoundError


def check_object_url(url: str, allowed: Sequence[str]) -> ObjectUrl:
    """The bucket and key of an allowed URL; raises SourceForbidden."""
    found = _parse(url)
    for entry in allowed:
        root = _parse(entry)
        inside = not root.key or f"{found.key}/".startswith(f"{root.key}/")
        if found.bucket == root.bucket and inside:
            return found
    raise SourceForbidden(_FORBIDDEN)


def list_objects(settings: Settings, url: str) -> Iterator[dict[str, Any]]:
    """Names, keys and sizes of the objects below a prefix, in the store's order."""
    root = check_object_url(url, settings.source_buckets)
    try:
        for page in obstore.list(open_bucket(settings, root.bucket), root.key or None):
            for found in page:
                name = found["path"][len(root.key) :].lstrip("/") or found["path"]
                is_folder = found["size"] == 0 and "." not in name  # of a web interface
                if not is_folder and not is_hidden(name):
                    yield {"name": name, "key": found["path"], "size": found["size"]}
    except _FAILURES as error:
        raise SourceUnreadable(f"The bucket cannot be listed: {reason_of(error)}") from error


class ObjectReader:
    """Reads objects with one connection pool per bucket."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stores: dict[str, S3Store] = {}

    def read(self, url: ObjectUrl) -> bytes:
        max_bytes = self._settings.max_image_bytes
        data = bytearray()
        try:
            result = obstore.get(self._store(url.bucket), url.key)
            if result.meta["size"] <= max_bytes:
                for chunk in result:
                    data += chunk
                    if len(data) > max_bytes:
                        break
        except _FAILURES as error:
            raise SourceUnreadable(f"The object cannot be read: {reason_of(error)}") from error
        if result.meta["size"] > max_bytes or len(data) > max_bytes:
            raise ImageTooLarge(f"Larger than {max_bytes:,} bytes (TEMI_MAX_IMAGE_BYTES).")
        return bytes(data)

    def _store(self, bucket: str) -> "S3Store":
        if bucket not in self._stores:
            self._stores[bucket] = open_bucket(self._settings, bucket)
        return self._stores[bucket]


def _parse(url: str) -> ObjectUrl:
    try:
        return parse_object_url(url)
    except ValueError as error:
        raise SourceForbidden(
            f"{url[:200]!r} is not the URL of a bucket; write s3://bucket/prefix."
        ) from error
