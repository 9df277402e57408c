"""Files that nothing refers to any more are removed, a little at a time."""

import time

import structlog

from app.core.blobs import condemn_orphans, remove_condemned
from app.core.exports.files import remove_orphans
from app.core.registry.deletion import remove_orphans as remove_orphaned_models
from app.core.runtime import Runtime
from app.core.uploads import remove_expired

_ORPHAN_SECONDS = 60.0  # a folder of blobs a minute: all of them within some hours
log = structlog.get_logger()


class Cleaner:
    """Called every few seconds. Any number may run: what one has removed, the others miss."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._minute = int(time.time() / _ORPHAN_SECONDS)

    def __call__(self) -> int:
        try:
            removed = remove_condemned(self._runtime) + remove_expired(self._runtime)
            minute = int(time.time() / _ORPHAN_SECONDS)
            if minute != self._minute:
                self._minute = minute
                condemn_orphans(self._runtime, minute)
                removed += remove_orphans(self._runtime.db, self._runtime.storage)
                removed += remove_orphaned_models(self._runtime)
        except OSError as error:  # another time: nothing depends on it
            log.warning("cleaning_failed", reason=str(error))
            return 0
        if removed:
            log.info("cleaned", files=removed)
        return removed
