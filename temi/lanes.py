"""Independent work side by side on a CPU, each piece on cores of its own.

Cores that share every matrix product wait for each other after each one, and wait long when
another process has taken one of them. Pieces that meet only at the end of a step do not.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")


class Lanes:
    def __init__(self, n_pieces: int, device: torch.device) -> None:
        threads = torch.get_num_threads() if device.type == "cpu" else 1
        self.count = max(1, min(n_pieces, threads))
        self._pool = (
            ThreadPoolExecutor(self.count, "lane", torch.set_num_threads, (threads // self.count,))
            if self.count > 1
            else None
        )

    def map(self, work: Callable[..., Result], *pieces: Iterable[Any]) -> list[Result]:
        """``work`` on every piece; the results in the order of the pieces."""
        if self._pool is None:
            return [work(*piece) for piece in zip(*pieces, strict=True)]
        before = torch.get_num_threads()
        try:
            return list(self._pool.map(work, *pieces))
        finally:
            # What a lane sets for itself is also the default of threads that start later.
            torch.set_num_threads(before)
