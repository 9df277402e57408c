"""Signs of life from code that knows nothing of jobs: a part was sent, a page was read.

A job's process listens here, so that a long transfer is not taken for a process that hangs. Only
finished work may be reported, never the passing of time.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")


class _Activity:
    listener: Callable[[], None] | None = None


def listen_to_activity(listener: Callable[[], None] | None) -> None:
    """One listener a process; it may be called from any thread, thousands of times a second."""
    _Activity.listener = listener


def report_activity() -> None:
    """A bounded piece of work has ended. Costs next to nothing where no job runs."""
    if _Activity.listener is not None:
        _Activity.listener()


def reporting(items: Iterable[Item]) -> Iterator[Item]:
    """The same items; each one that was reached is a sign of life."""
    for item in items:
        report_activity()
        yield item
