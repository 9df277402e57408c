import pytest
import torch

from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.training.head_partition import HeadPartition, max_processes

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def config(n_heads: int) -> TrainConfig:
    return TrainConfig(n_clusters=3, n_heads=n_heads, batch_size=8, hidden_dim=16)


@pytest.mark.parametrize("device", [CPU, GPU], ids=str)
@pytest.mark.parametrize("n_heads", [1, 2, 3, 7, 16, 50])
@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_every_head_belongs_to_one_process(
    device: torch.device, n_heads: int, processes: int
) -> None:
    if processes > n_heads:
        with pytest.raises(InvalidConfig):
            HeadPartition.of(config(n_heads), device, rank=0, world_size=processes)
        return
    partitions = [
        HeadPartition.of(config(n_heads), device, rank=rank, world_size=processes)
        for rank in range(processes)
    ]

    heads = partitions[0].heads_per_rank
    assert sum(heads) == n_heads
    assert min(heads) >= 1
    assert max(heads) - min(heads) <= max(
        size for sizes in partitions[0].group_sizes for size in sizes
    )
    all_heads = [head for partition in partitions for head in range(n_heads)[partition.local_heads]]
    assert all_heads == list(range(n_heads))
    full = torch.arange(3 * n_heads).reshape(3 * n_heads, 1)
    assert torch.equal(torch.cat([partition.local_rows(full) for partition in partitions]), full)
    assert {partition.full_shape(partition.local_rows(full)) for partition in partitions} == {
        tuple(full.shape)
    }
    for head in range(n_heads):
        process, group, index = partitions[0].locate(head)
        sizes = partitions[process].group_sizes[process]
        assert partitions[process].local_heads.start + sum(sizes[:group]) + index == head


@pytest.mark.parametrize("n_heads", [1, 2, 3, 7, 16])
def test_no_group_is_split_on_a_cpu(n_heads: int) -> None:
    full = HeadPartition.of(config(n_heads), CPU, rank=0, world_size=1).group_sizes[0]
    for processes in range(1, max_processes(config(n_heads), CPU) + 1):
        shared = HeadPartition.of(config(n_heads), CPU, rank=0, world_size=processes)
        assert sum(shared.group_sizes, ()) == full


def test_every_gpu_can_train_a_single_head() -> None:
    assert max_processes(config(5), GPU) == 5
