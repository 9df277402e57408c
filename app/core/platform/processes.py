"""Child processes that never outlive their parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

_PR_SET_PDEATHSIG = 1


def die_with_parent(parent_pid: int) -> None:
    """Called first in a child: the kernel ends it when its parent ends, however that came.

    Where the kernel cannot (anything but Linux), fencing still keeps an orphan harmless.
    """
    if sys.platform != "linux":
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:  # it ended before the line above
        os._exit(1)


def bound_to_us() -> Callable[[], None] | None:
    """For `subprocess.Popen(preexec_fn=...)`: the program it becomes ends when we do."""
    return partial(die_with_parent, os.getpid()) if sys.platform == "linux" else None
