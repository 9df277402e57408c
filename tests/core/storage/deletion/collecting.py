"""Runs the collector as if in three days, when all files of a test are old."""

import time

from app.core.runtime import Runtime

DAYS = 3 * 24 * 3600.0


def collected(runtime: Runtime, *, dry_run: bool = False) -> set[str]:
    """The keys and folders that it deletes."""
    found = runtime.collector.collect(dry_run=dry_run, now=time.time() + DAYS)
    return {garbage.key for garbage in found}
