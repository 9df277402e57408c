import pytest
import torch

from temi.config import TrainConfig
from temi.errors import InvalidConfig
from temi.training.head_partition import HeadPartition, most_processes

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def config(n_heads: int) -> TrainConfig:
    return TrainConfig(n_clusters=3, n_heads=n_heads, batch_size=8, hidden_dim=16)


@pytest.mark.parametrize("device", [CPU, GPU], ids=str)
@pytest.mark.parametrize("n_heads", [1, 2, 3, 7, 16, 50])
@pytest.mark.parametrize("processes", [1, 2, 3, 8])
def test_every_head_has_one_place(device: torch.device, n_heads: int, processes: int) -> None:
    if processes > n_heads:
        with pytest.raises(InvalidConfig):
            HeadPartition.of(config(n_heads), device, rank=0, processes=processes)
        return
    shares = [
        HeadPartition.of(config(n_heads), device, rank=rank, processes=processes)
        for rank in range(processes)
    ]

    heads = shares[0].heads
    assert sum(heads) == n_heads
    assert min(heads) >= 1
    assert max(heads) - min(heads) <= max(size for sizes in shares[0].groups for size in sizes)
    everyone = [head for share in shares for head in range(n_heads)[share.mine]]
    assert everyone == list(range(n_heads))
    whole = torch.arange(3 * n_heads).reshape(3 * n_heads, 1)
    assert torch.equal(torch.cat([share.rows(whole) for share in shares]), whole)
    assert {share.whole_shape(share.rows(whole)) for share in shares} == {tuple(whole.shape)}
    for head in range(n_heads):
        process, group, place = shares[0].find(head)
        sizes = shares[process].groups[process]
        assert shares[process].mine.start + sum(sizes[:group]) + place == head


@pytest.mark.parametrize("n_heads", [1, 2, 3, 7, 16])
def test_no_group_is_cut_on_a_cpu(n_heads: int) -> None:
    whole = HeadPartition.of(config(n_heads), CPU, rank=0, processes=1).groups[0]
    for processes in range(1, most_processes(config(n_heads), CPU) + 1):
        shared = HeadPartition.of(config(n_heads), CPU, rank=0, processes=processes)
        assert sum(shared.groups, ()) == whole


def test_a_gpu_can_have_a_single_head() -> None:
    assert most_processes(config(5), GPU) == 5
