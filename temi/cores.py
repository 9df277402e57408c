"""The number of cores that this process uses where a library has no setting; no torch here."""

import os

_limit: int | None = None


def limit_cores(count: int) -> None:
    """Set the number for the whole process."""
    global _limit
    _limit = count


def core_count() -> int:
    return _limit or os.cpu_count() or 1
