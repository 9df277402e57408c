"""Prefixes of an S3-compatible store, as far as the settings open them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from app.core.errors import ImageTooLarge, SourceForbidden, SourceUnreadable
from app.core.settings import Settings
from app.core.sources.base import is_hidden

if TYPE_CHECKING:
    from obstore.store import S3Config

_SCHEME = "s3://"
_FORBIDDEN = "This server reads images only from the buckets in its TEMI_SOURCE_BUCKETS."
_FAILURES = (BaseError, OSError)  # an object that is not there is a FileNotFoundError
_RETRY = timedelta(seconds=20)


@dataclass(frozen=True)
class ObjectUrl:
    bucket: str
    key: str  # without slashes at its ends; empty is the whole bucket


def is_object_url(url: str) -> bool:
    return url.lower().startswith(_SCHEME)


def check_object_url(url: str, allowed: Sequence[str]) -> ObjectUrl:
    """The bucket and key of an address that may be read."""
    found = _parse(url)
    for entry in allowed:
        root = _parse(entry)
        inside = not root.key or f"{found.key}/".startswith(f"{root.key}/")
        if found.bucket == root.bucket and inside:
            return found
    raise SourceForbidden(_FORBIDDEN)


def list_objects(settings: Settings, url: str) -> Iterator[dict[str, Any]]:
    """Keys and sizes of the objects below a prefix, in the store's order."""
    where = check_object_url(url, settings.source_buckets)
    try:
        for page in obstore.list(_store(settings, where.bucket), where.key or None):
            for found in page:
                name = found["path"][len(where.key) :].lstrip("/") or found["path"]
                is_folder = found["size"] == 0 and "." not in name  # made by the store's browser
                if not is_folder and not is_hidden(name):
                    yield {"name": name, "key": found["path"], "size": found["size"]}
    except _FAILURES as error:
        raise SourceUnreadable(f"The bucket cannot be listed: {_reason(error)}") from error


class ObjectReader:
    """Reads objects; keeps one connection pool a bucket."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._stores: dict[str, S3Store] = {}

    def read(self, where: ObjectUrl) -> bytes:
        max_bytes = self._settings.max_image_bytes
        data = bytearray()
        try:
            answer = obstore.get(self._store(where.bucket), where.key)
            if answer.meta["size"] <= max_bytes:
                for chunk in answer:
                    data += chunk
                    if len(data) > max_bytes:
                        break
        except _FAILURES as error:
            raise SourceUnreadable(f"The object cannot be read: {_reason(error)}") from error
        if answer.meta["size"] > max_bytes or len(data) > max_bytes:
            raise ImageTooLarge(f"Larger than {max_bytes:,} bytes.")
        return bytes(data)

    def _store(self, bucket: str) -> S3Store:
        if bucket not in self._stores:
            self._stores[bucket] = _store(self._settings, bucket)
        return self._stores[bucket]


def _parse(url: str) -> ObjectUrl:
    if not is_object_url(url):
        raise SourceForbidden("The address of a bucket looks like s3://bucket/prefix.")
    bucket, _, key = url[len(_SCHEME) :].partition("/")
    key = key.strip("/")
    if not bucket or any(part in ("", ".", "..") for part in key.split("/") if key):
        raise SourceForbidden("The address of a bucket looks like s3://bucket/prefix.")
    return ObjectUrl(bucket, key)


def _store(settings: Settings, bucket: str) -> S3Store:
    """Credentials and region come from the standard AWS_... variables."""
    endpoint = settings.s3_endpoint
    config: S3Config = {"endpoint": endpoint} if endpoint else {}
    return S3Store(
        bucket,
        config=config,
        client_options={"allow_http": endpoint.startswith("http://"), "timeout": "60s"},
        retry_config={"max_retries": 3, "retry_timeout": _RETRY},
    )


def _reason(error: Exception) -> str:
    """Its beginning: the rest may tell of the server's network."""
    return str(error).partition(": Error performing")[0].partition("\n")[0][:200]
