"""Independent work side by side on a CPU, each piece on cores of its own.

Cores that share every matrix product wait for each other after each one, and wait long when
another process has taken one of them. Pieces that meet only at the end of a step do not. A piece
always has one core, so the results are the same bits on any number of cores.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

from temi.device import torch_threads

Result = TypeVar("Result")


class HeadThreadPool:
    def __init__(self, n_pieces: int, device: torch.device) -> None:
        self._on_cpu = device.type == "cpu"
        self.count = max(1, min(n_pieces, torch.get_num_threads() if self._on_cpu else 1))
        self._pool = (
            ThreadPoolExecutor(self.count, "lane", torch.set_num_threads, (1,))
            if self.count > 1
            else None
        )

    def map(self, work: Callable[..., Result], *pieces: Iterable[Any]) -> list[Result]:
        """``work`` on every piece; the results in the order of the pieces."""
        # What a lane sets for itself is also the default of threads that start later.
        with torch_threads(1 if self._on_cpu else torch.get_num_threads()):
            if self._pool is None:
                return [work(*piece) for piece in zip(*pieces, strict=True)]
            return list(self._pool.map(work, *pieces))
