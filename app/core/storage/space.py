"""The free space of the storage."""

import shutil

from app.core.platform.settings import Settings


def free_bytes(settings: Settings) -> int | None:
    """None if it is not known: a bucket has no limit of its own, or the disk does not answer."""
    if settings.storage_url:
        return None
    try:
        return shutil.disk_usage(settings.local_dir).free
    except OSError:
        return None
