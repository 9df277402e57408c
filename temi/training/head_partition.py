"""The partition of the heads over the processes of a training run."""

from dataclasses import dataclass
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.training.head_groups import heads_per_group


def max_processes(config: TrainConfig, device: torch.device) -> int:
    """The most processes that can train these heads.

    On a CPU a group of heads is never split, so that the results stay bit-identical.
    """
    if device.type == "cpu":
        return -(-config.n_heads // heads_per_group(config, device))
    return config.n_heads


@dataclass(frozen=True)
class HeadPartition:
    """Each process trains consecutive groups of heads; this process has number ``rank``."""

    rank: int
    group_sizes: tuple[tuple[int, ...], ...]  # of every process: heads in each of its groups

    @classmethod
    def of(
        cls, config: TrainConfig, device: torch.device, *, rank: int, world_size: int
    ) -> "HeadPartition":
        if world_size > config.n_heads:
            raise InvalidConfig(
                "n_heads", f"{config.n_heads} heads cannot be split over {world_size} processes"
            )
        size = heads_per_group(config, device)
        if -(-config.n_heads // size) < world_size:
            size = config.n_heads // world_size
        sizes = [min(size, config.n_heads - done) for done in range(0, config.n_heads, size)]
        # The last process gets the extra group, if there is one: the last group is the smallest.
        bounds = [len(sizes) * process // world_size for process in range(world_size + 1)]
        return cls(rank, tuple(tuple(sizes[first:end]) for first, end in pairwise(bounds)))

    @property
    def heads_per_rank(self) -> list[int]:
        """The number of heads of each process."""
        return [sum(sizes) for sizes in self.group_sizes]

    @property
    def local_heads(self) -> slice:
        """The heads of this process."""
        bounds = [0, *accumulate(self.heads_per_rank)]
        return slice(bounds[self.rank], bounds[self.rank + 1])

    def locate(self, head: int) -> tuple[int, int, int]:
        """Return the process of a head, its group there, and its index in the group."""
        for process, sizes in enumerate(self.group_sizes):
            for group, size in enumerate(sizes):
                if head < size:
                    return process, group, head
                head -= size
        raise IndexError(head)

    def local_rows(self, full: Tensor) -> Tensor:
        """The rows of this process in a tensor whose first axis covers all heads."""
        rows_per_head = len(full) // sum(self.heads_per_rank)
        heads = self.local_heads
        return full[heads.start * rows_per_head : heads.stop * rows_per_head]

    def full_shape(self, local: Tensor) -> tuple[int, ...]:
        """The shape of the tensor over all heads that ``local`` is this process's part of."""
        rows_per_head = len(local) // self.heads_per_rank[self.rank]
        return (rows_per_head * sum(self.heads_per_rank), *local.shape[1:])
