"""Runs the cleanup of the storage, and logs what it deletes."""

import structlog

from app.core.platform.errors import StorageUnavailable
from app.core.runtime import Runtime
from app.core.storage.deletion.cleanup import Cleanup

log = structlog.get_logger()


class Cleaner:
    """Called every few seconds; returns how many files it has deleted."""

    def __init__(self, runtime: Runtime) -> None:
        self._cleanup = Cleanup(runtime.db, runtime.storage, runtime.settings)

    def __call__(self) -> int:
        try:
            deleted = self._cleanup.run()
        except (OSError, StorageUnavailable) as error:  # nothing depends on this round
            log.warning("cleanup_failed", reason=str(error))
            return 0
        if deleted:
            log.info("files_deleted", files=deleted)
        return deleted
