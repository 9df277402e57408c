"""A thread pool for independent tasks on a CPU, with one core for each task.

Threads that share a matrix product synchronize after every product, which is slow when another
process uses one of the cores. Independent tasks synchronize only at the end of a training step.
Each task uses exactly one core, so the results are bit-identical for any number of cores.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import torch

from temi.device import torch_threads

Result = TypeVar("Result")


class HeadThreadPool:
    """Runs head groups in parallel on a CPU; on a GPU, one after the other."""

    def __init__(self, n_tasks: int, device: torch.device) -> None:
        self._on_cpu = device.type == "cpu"
        self.n_threads = max(1, min(n_tasks, torch.get_num_threads() if self._on_cpu else 1))
        self._pool = (
            ThreadPoolExecutor(self.n_threads, "heads", torch.set_num_threads, (1,))
            if self.n_threads > 1
            else None
        )

    def map(self, function: Callable[..., Result], *iterables: Iterable[Any]) -> list[Result]:
        """Apply ``function`` to every item, like ``Executor.map``; results keep the order."""
        # torch.set_num_threads in a pool thread also changes the default of later threads.
        with torch_threads(1 if self._on_cpu else torch.get_num_threads()):
            if self._pool is None:
                return [function(*args) for args in zip(*iterables, strict=True)]
            return list(self._pool.map(function, *iterables))
