"""Storage of images, artifacts and models: a local folder or a bucket."""

from app.core.platform.settings import Settings
from app.core.storage.base import Batch, Storage, StoredFile, raise_if_full, store_blob


def open_storage(settings: Settings) -> Storage:
    """The backend is imported here: most processes use one of the two."""
    if not settings.storage_url:
        from app.core.storage.local import LocalStorage

        return LocalStorage(settings.blob_dir)
    from app.core.storage.buckets import open_bucket, parse_object_url
    from app.core.storage.cache import Cache
    from app.core.storage.s3 import S3Storage

    url = parse_object_url(settings.storage_url)
    return S3Storage(
        open_bucket(settings, url.bucket, url.key),
        Cache(settings.cache_dir, settings.cache_bytes),
        name=settings.storage_url.rstrip("/"),
        part_bytes=settings.s3_part_bytes,
    )


__all__ = [
    "Batch",
    "Storage",
    "StoredFile",
    "open_storage",
    "raise_if_full",
    "store_blob",
]
