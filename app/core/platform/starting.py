"""The imports of a process that starts. This module itself must stay free of other modules."""

import gc
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def importing() -> Iterator[None]:
    """A block that imports modules: nothing of them is garbage, and to search for it takes a tenth
    of the time. What was imported is never searched later, either."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def pack_call(target: Callable[..., None], *arguments: Any) -> bytes:
    return pickle.dumps((target, arguments), pickle.HIGHEST_PROTOCOL)


def run_packed(packed: bytes, *more: Any) -> None:
    """In a new process: imports the modules of a packed call and runs it, with more arguments."""
    with importing():
        target, arguments = pickle.loads(packed)  # noqa: S301 - of the process that started this one
    target(*arguments, *more)
