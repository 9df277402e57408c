"""Collective operations between the processes of a training run, usually one process per GPU.

Every process draws the same pairs in the same order and trains its own part of the heads. The
heads exchange one thing per step: each teacher's weight for each pair. The weights are gathered
per head and averaged in head order, so the average is bit-identical for any number of processes.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor


class ProcessGroup(Protocol):
    """The processes of a run. All of them make the same calls in the same order.

    Gathered tensors have the heads as their first axis; ``heads_per_rank`` is the number of heads
    of each process.
    """

    rank: int
    world_size: int

    def all_gather(self, local: Tensor, heads_per_rank: Sequence[int]) -> Tensor:
        """Concatenate the rows of all processes, in every process, on the device of ``local``."""
        ...

    def all_gather_on_cpu(self, local: Tensor, heads_per_rank: Sequence[int]) -> Tensor:
        """Like ``all_gather``, on the CPU: decisions then do not depend on the kind of device."""
        ...

    def gather(
        self, local: Mapping[str, Tensor], heads_per_rank: Sequence[int]
    ) -> dict[str, Tensor]:
        """Concatenate the rows of all processes in process 0; returns {} in the others."""
        ...

    def broadcast(self, tensors: Mapping[str, Tensor], src: int = 0) -> dict[str, Tensor]:
        """Return the tensors of process ``src`` in every process; the others pass {}."""
        ...


class SingleProcess:
    """The process group of a run with one process."""

    rank = 0
    world_size = 1

    def all_gather(self, local: Tensor, heads_per_rank: Sequence[int]) -> Tensor:  # noqa: ARG002
        return local

    def all_gather_on_cpu(self, local: Tensor, heads_per_rank: Sequence[int]) -> Tensor:  # noqa: ARG002
        return local

    def gather(
        self,
        local: Mapping[str, Tensor],
        heads_per_rank: Sequence[int],  # noqa: ARG002
    ) -> dict[str, Tensor]:
        return dict(local)

    def broadcast(
        self,
        tensors: Mapping[str, Tensor],
        src: int = 0,  # noqa: ARG002
    ) -> dict[str, Tensor]:
        return dict(tensors)


class TorchProcessGroup:
    """The default group of ``torch.distributed``; call ``init_process_group`` first."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.world_size = dist.get_world_size()
        # States do not fit on a GPU beside the run itself, so they are sent between CPUs.
        self._cpu_group: dist.ProcessGroup | None = None  # the default group
        if dist.get_backend() != "gloo":
            group = dist.new_group(backend="gloo")
            assert isinstance(group, dist.ProcessGroup)  # every process is a member of it
            self._cpu_group = group

    def destroy(self) -> None:
        """Call it in every process at the end of the run.

        A group that is still referenced lives until the interpreter exits; its threads then
        sometimes abort the process.
        """
        self._cpu_group = None
        dist.destroy_process_group()

    def all_gather(self, local: Tensor, heads_per_rank: Sequence[int]) -> Tensor:
        return self._all_gather(local, heads_per_rank, None)

    def all_gather_on_cpu(self, local: Tensor, heads_per_rank: Sequence[int]) -> Tensor:
        return self._all_gather(local.cpu(), heads_per_rank, self._cpu_group)

    def gather(
        self, local: Mapping[str, Tensor], heads_per_rank: Sequence[int]
    ) -> dict[str, Tensor]:
        if self.rank > 0:
            for tensor in local.values():
                dist.send(tensor.detach().cpu().contiguous(), dst=0, group=self._cpu_group)
            return {}
        return {
            name: torch.cat([tensor.detach().cpu(), *self._receive(tensor, heads_per_rank)])
            for name, tensor in local.items()
        }

    def broadcast(self, tensors: Mapping[str, Tensor], src: int = 0) -> dict[str, Tensor]:
        specs = [{name: (tuple(t.shape), t.dtype) for name, t in tensors.items()}]
        dist.broadcast_object_list(specs, src=src, group=self._cpu_group)
        received = {}
        for name, (shape, dtype) in specs[0].items():
            is_source = self.rank == src
            buffer = (
                tensors[name].cpu().contiguous() if is_source else torch.empty(shape, dtype=dtype)
            )
            dist.broadcast(buffer, src=src, group=self._cpu_group)
            received[name] = buffer
        return received

    def _all_gather(
        self, local: Tensor, heads_per_rank: Sequence[int], group: dist.ProcessGroup | None
    ) -> Tensor:
        longest = max(heads_per_rank)  # all_gather needs equal shapes, so shorter ones are padded
        sent = local.new_zeros((longest, *local.shape[1:]))
        sent[: len(local)] = local
        received = local.new_empty((self.world_size * longest, *local.shape[1:]))
        dist.all_gather_into_tensor(received, sent, group=group)
        padded = torch.split(received, longest)
        return torch.cat([rows[:n] for rows, n in zip(padded, heads_per_rank, strict=True)])

    def _receive(self, local: Tensor, heads_per_rank: Sequence[int]) -> list[Tensor]:
        """Receive the rows of the other processes that belong to the same tensor as ``local``."""
        rows_per_head = len(local) // heads_per_rank[0]
        received = []
        for rank in range(1, self.world_size):
            shape = (rows_per_head * heads_per_rank[rank], *local.shape[1:])
            rows = torch.empty(shape, dtype=local.dtype)
            dist.recv(rows, src=rank, group=self._cpu_group)
            received.append(rows)
        return received
