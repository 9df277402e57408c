"""Properties of processes: they end with their parent, and their files are private."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # takes a tenth of a second, and the command needs no settings
    from app.core.platform.settings import Settings

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Call it first in a child: the kernel kills the child when its parent ends for any reason.

    Where the kernel cannot (anything but Linux), fencing still keeps an orphan harmless.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it ended before the line above
        os._exit(1)


def kill_with_parent() -> Callable[[], None] | None:
    """For `subprocess.Popen(preexec_fn=...)`: the program is killed when this process ends."""
    return partial(die_with_parent, os.getpid()) if sys.platform == "linux" else None


def import_paths() -> dict[str, str]:
    """The environment with which a Python program finds the modules that this process finds."""
    return {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def restrict_new_files(settings: "Settings") -> None:
    """Sets the umask of this process; processes that it starts inherit it."""
    os.umask(int(settings.umask, 8))


@contextmanager
def restricted_files(settings: "Settings") -> Iterator[None]:
    """Sets the umask for a block, in a process that also writes files for its user."""
    before = os.umask(int(settings.umask, 8))
    try:
        yield
    finally:
        os.umask(before)


def users_umask() -> int:
    """The current umask, which can only be read by setting it."""
    found = os.umask(0o077)
    os.umask(found)
    return found
