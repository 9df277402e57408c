"""Heads shared out over several processes, usually one a GPU.

All processes draw the same pairs in the same order and train some of the heads each. What heads
need of each other goes round once a step: how far each teacher trusts each pair. It goes round
head by head and is averaged in the order of the heads, so the number of processes changes no bit
of the average.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor


class ProcessGroup(Protocol):
    """The processes of a run. All of them make the same calls in the same order.

    ``heads`` says how many heads each process has; tensors begin with the axis of heads.
    """

    rank: int
    size: int

    def join(self, mine: Tensor, heads: Sequence[int]) -> Tensor:
        """The rows of all processes, in every process, on the device of ``mine``."""
        ...

    def join_on_cpu(self, mine: Tensor, heads: Sequence[int]) -> Tensor:
        """The same for decisions: what follows from it is the same on every kind of device."""
        ...

    def collect(self, mine: Mapping[str, Tensor], heads: Sequence[int]) -> dict[str, Tensor]:
        """The rows of all processes in process 0; nothing in the others."""
        ...

    def share(self, tensors: Mapping[str, Tensor], source: int = 0) -> dict[str, Tensor]:
        """What process ``source`` has given, in every process; the others give nothing."""
        ...


class SingleProcess:
    """The only process of a run."""

    rank = 0
    size = 1

    def join(self, mine: Tensor, heads: Sequence[int]) -> Tensor:  # noqa: ARG002
        return mine

    def join_on_cpu(self, mine: Tensor, heads: Sequence[int]) -> Tensor:  # noqa: ARG002
        return mine

    def collect(
        self,
        mine: Mapping[str, Tensor],
        heads: Sequence[int],  # noqa: ARG002
    ) -> dict[str, Tensor]:
        return dict(mine)

    def share(
        self,
        tensors: Mapping[str, Tensor],
        source: int = 0,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        return dict(tensors)


class TorchProcessGroup:
    """The processes of ``torch.distributed.init_process_group``, however they were started."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()
        # States are larger than a GPU has room for next to a run: they travel between CPUs.
        cpu_only = dist.get_backend() == "gloo"
        group = dist.group.WORLD if cpu_only else dist.new_group(backend="gloo")
        assert isinstance(group, dist.ProcessGroup)  # which every process is a member of
        self._cpu_group = group

    def join(self, mine: Tensor, heads: Sequence[int]) -> Tensor:
        return self._join(mine, heads, dist.group.WORLD)

    def join_on_cpu(self, mine: Tensor, heads: Sequence[int]) -> Tensor:
        return self._join(mine.cpu(), heads, self._cpu_group)

    def collect(self, mine: Mapping[str, Tensor], heads: Sequence[int]) -> dict[str, Tensor]:
        if self.rank > 0:
            for tensor in mine.values():
                dist.send(tensor.detach().cpu().contiguous(), dst=0, group=self._cpu_group)
            return {}
        return {
            name: torch.cat([tensor.detach().cpu(), *self._receive(tensor, heads)])
            for name, tensor in mine.items()
        }

    def share(self, tensors: Mapping[str, Tensor], source: int = 0) -> dict[str, Tensor]:
        told = [{name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}]
        dist.broadcast_object_list(told, src=source, group=self._cpu_group)
        shared = {}
        for name, (shape, dtype) in told[0].items():
            given = self.rank == source
            buffer = tensors[name].cpu().contiguous() if given else torch.empty(shape, dtype=dtype)
            dist.broadcast(buffer, src=source, group=self._cpu_group)
            shared[name] = buffer
        return shared

    def _join(self, mine: Tensor, heads: Sequence[int], group: dist.ProcessGroup | None) -> Tensor:
        most = max(heads)  # all must send alike: those with fewer heads fill up
        sent = mine.new_zeros((most, *mine.shape[1:]))
        sent[: len(mine)] = mine
        received = mine.new_empty((self.size * most, *mine.shape[1:]))
        dist.all_gather_into_tensor(received, sent, group=group)
        rows = torch.split(received, most)
        return torch.cat([part[:count] for part, count in zip(rows, heads, strict=True)])

    def _receive(self, like: Tensor, heads: Sequence[int]) -> list[Tensor]:
        """The others' parts of a tensor, of which this process has given ``like``."""
        rows_a_head = len(like) // heads[0]
        parts = []
        for rank in range(1, self.size):
            shape = (rows_a_head * heads[rank], *like.shape[1:])
            part = torch.empty(shape, dtype=like.dtype)
            dist.recv(part, src=rank, group=self._cpu_group)
            parts.append(part)
        return parts
