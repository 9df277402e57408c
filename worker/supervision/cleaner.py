"""Files that nothing refers to any more are removed, a little at a time."""

import time

import structlog

from app.core.datasets.uploads import remove_expired
from app.core.platform.errors import StorageUnavailable
from app.core.runtime import Runtime
from app.core.storage.blobs import delete_scheduled_blobs
from app.core.storage.gc.collector import parts

_PART_SECONDS = 60.0  # a folder a minute: all of them within half a day
_ASIDE_SECONDS = 24 * 3600.0  # nobody writes a file for longer
log = structlog.get_logger()


class Cleaner:
    """Called every few seconds. Any number may run: what one has removed, the others miss."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._parts = parts()
        self._minute = int(time.time() / _PART_SECONDS)

    def __call__(self) -> int:
        try:
            removed = self._remove_deleted()
            minute = int(time.time() / _PART_SECONDS)
            if minute != self._minute:
                self._minute = minute
                removed += self._collect(minute)
        except (OSError, StorageUnavailable) as error:  # another time: nothing depends on it
            log.warning("cleaning_failed", reason=str(error))
            return 0
        if removed:
            log.info("cleaned", files=removed)
        return removed

    def _remove_deleted(self) -> int:
        runtime = self._runtime
        grace = runtime.settings.delete_grace_seconds
        blobs = delete_scheduled_blobs(runtime.db, runtime.storage, grace)
        return blobs + remove_expired(runtime.db, runtime.uploads)

    def _collect(self, minute: int) -> int:
        kind, folder = self._parts[minute % len(self._parts)]
        found = sum(
            len(garbage.files) for garbage in self._runtime.collector.collect_part(kind, folder)
        )
        return found + self._runtime.storage.clean(_ASIDE_SECONDS, time.time())
