"""The collector as it will be in three days, when nothing of a test is young any more."""

import time

from app.core.runtime import Runtime

DAYS = 3 * 24 * 3600.0


def collected(runtime: Runtime, *, dry_run: bool = False) -> set[str]:
    """Keys and folders that it takes."""
    found = runtime.collector.collect(dry_run=dry_run, now=time.time() + DAYS)
    return {garbage.key for garbage in found}
