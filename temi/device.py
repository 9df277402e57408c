"""Which device to compute on, and with how many cores."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from temi.errors import InvalidConfig


def resolve_device(device: str = "auto") -> torch.device:
    """``auto`` is the GPU if there is one, else the CPU; anything else is taken literally."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise InvalidConfig("device", f"no device is called {device!r}") from None
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise InvalidConfig("device", "cuda was asked for, but this machine has no usable GPU")
    return resolved


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Torch uses ``count`` cores in the calling thread."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
