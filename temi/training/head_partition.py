"""Which process of a run trains which heads."""

from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.training.head_groups import heads_per_group


def most_processes(config: TrainConfig, device: torch.device) -> int:
    """How many can share the heads. On a CPU no group is cut, so that the bits stay the same."""
    if device.type == "cpu":
        return -(-config.n_heads // heads_per_group(config, device))
    return config.n_heads


@dataclass(frozen=True)
class HeadPartition:
    """Each process has some groups of heads that follow each other; this one has ``rank``."""

    rank: int
    groups: tuple[tuple[int, ...], ...]  # sizes of the groups of every process

    @classmethod
    def of(
        cls, config: TrainConfig, device: torch.device, *, rank: int, processes: int
    ) -> "HeadPartition":
        if processes > config.n_heads:
            raise InvalidConfig("n_heads", f"{processes} processes need a head each")
        size = heads_per_group(config, device)
        if -(-config.n_heads // size) < processes:
            size = config.n_heads // processes
        sizes = [min(size, config.n_heads - done) for done in range(0, config.n_heads, size)]
        # The last process gets one more group, if any does: the last group is the smallest.
        bounds = [len(sizes) * process // processes for process in range(processes + 1)]
        return cls(rank, tuple(tuple(sizes[first:end]) for first, end in pairwise(bounds)))

    @property
    def heads(self) -> list[int]:
        """How many heads each process has."""
        return [sum(sizes) for sizes in self.groups]

    @property
    def mine(self) -> slice:
        """The heads of this process."""
        bounds = [0, *accumulate(self.heads)]
        return slice(bounds[self.rank], bounds[self.rank + 1])

    def find(self, head: int) -> tuple[int, int, int]:
        """Process, group within it, place within that."""
        for process, sizes in enumerate(self.groups):
            for group, size in enumerate(sizes):
                if head < size:
                    return process, group, head
                head -= size
        raise IndexError(head)

    def rows(self, whole: Tensor) -> Tensor:
        """Those of this process's heads, of a tensor that begins with the axis of all heads."""
        rows_a_head = len(whole) // sum(self.heads)
        return whole[self.mine.start * rows_a_head : self.mine.stop * rows_a_head]

    def whole_shape(self, mine: Tensor) -> tuple[int, ...]:
        """Of the tensor that ``rows`` would take this one from."""
        rows_a_head = len(mine) // self.heads[self.rank]
        return (rows_a_head * sum(self.heads), *mine.shape[1:])
