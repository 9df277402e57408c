"""Reports of activity from code that knows nothing of jobs: a part was sent, a page was read.

The process of a job listens, so that a long transfer does not count as a stall. Report only
finished work, never the passing of time.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


class _Activity:
    listener: Callable[[], None] | None = None


def listen_to_activity(listener: Callable[[], None] | None) -> None:
    """Sets the one listener of the process; threads call it up to thousands of times a second."""
    _Activity.listener = listener


def report_activity() -> None:
    """Call it after a bounded piece of work; it costs next to nothing without a listener."""
    if _Activity.listener is not None:
        _Activity.listener()


def reporting(items: Iterable[Item]) -> Iterator[Item]:
    """Yields the items and reports activity for each."""
    for item in items:
        report_activity()
        yield item
