"""Who else on this machine may read what the service writes: by default no other user."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from app.core.platform.settings import Settings


def restrict_new_files(settings: Settings) -> None:
    """For this process and those that it starts: they inherit it."""
    os.umask(int(settings.umask, 8))


@contextmanager
def restricted_files(settings: Settings) -> Iterator[None]:
    """The same for a while, in a process that also writes files of its user's own."""
    before = os.umask(int(settings.umask, 8))
    try:
        yield
    finally:
        os.umask(before)


def users_umask() -> int:
    """It can only be read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found
