"""Opens buckets of an S3-compatible store, for sources and for the storage."""

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from obstore.store import S3Store

from app.core.platform.settings import Settings

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig, S3Config

_SCHEME = "s3://"
_CONNECT_TIMEOUT, _READ_TIMEOUT, _TOTAL_TIMEOUT = (timedelta(seconds=s) for s in (5, 30, 300))
_RETRY: "RetryConfig" = {
    "max_retries": 4,
    "retry_timeout": timedelta(seconds=20),
    "backoff": {
        "init_backoff": timedelta(milliseconds=100),
        "max_backoff": timedelta(seconds=2),
        "base": 2,
    },
}


@dataclass(frozen=True)
class ObjectUrl:
    bucket: str
    key: str  # without slashes at its ends; empty is the whole bucket


def is_object_url(url: str) -> bool:
    return url.lower().startswith(_SCHEME)


def parse_object_url(url: str) -> ObjectUrl:
    """Raises ValueError for anything but s3://bucket/prefix."""
    bucket, _, key = url[len(_SCHEME) :].partition("/")
    key = key.strip("/")
    ambiguous = any(part in ("", ".", "..") for part in key.split("/") if key)
    if not is_object_url(url) or not bucket or ambiguous:
        raise ValueError("the URL of a bucket looks like s3://bucket/prefix")
    return ObjectUrl(bucket, key)


def open_bucket(settings: Settings, bucket: str, prefix: str = "") -> S3Store:
    """Settings that are not set come from the standard AWS_... variables."""
    endpoint = settings.s3_endpoint
    config: S3Config = {}
    if endpoint:
        config["endpoint"] = endpoint
    if settings.s3_region:
        config["region"] = settings.s3_region
    if settings.s3_access_key is not None and settings.s3_secret_key is not None:
        config["access_key_id"] = settings.s3_access_key.get_secret_value()
        config["secret_access_key"] = settings.s3_secret_key.get_secret_value()
    limits: ClientConfig = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": _CONNECT_TIMEOUT,
        "read_timeout": _READ_TIMEOUT,
        "timeout": _TOTAL_TIMEOUT,
    }
    return S3Store(
        bucket,
        prefix=prefix or None,
        config=config,
        client_options=limits,
        retry_config=_RETRY,
    )


def reason_of(error: Exception) -> str:
    """The start of the message: the rest may reveal the server's network."""
    return str(error).partition(": Error performing")[0].partition("\n")[0][:200]
