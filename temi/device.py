"""Selection of the device and of the number of cores."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from temi.errors import InvalidConfig


def resolve_device(device: str = "auto") -> torch.device:
    """Return the device; ``auto`` is the GPU if there is one, else the CPU."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except RuntimeError:
        raise InvalidConfig("device", f"there is no device named {device!r}") from None
    if resolved.type == "cuda" and not torch.cuda.is_available():
        raise InvalidConfig("device", f"{device} was requested, but this machine has no usable GPU")
    return resolved


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Set the number of cores that torch uses in the calling thread."""
    before = torch.get_num_threads()
    if before == count:
        yield
        return
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
