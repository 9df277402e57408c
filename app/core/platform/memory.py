"""Memory of this process."""

import ctypes
import gc
import sys


def release_memory() -> None:
    """Gives freed memory back to the system: glibc would keep it for later."""
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # other C libraries have none
        if trim is not None:
            trim(0)
