from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

from temi.errors import TemiError
from temi.training.sampling import PairSampler

CPU = torch.device("cpu")


def sampler(neighbors: npt.NDArray[np.int64], batch_size: int, seed: int = 0) -> PairSampler:
    return PairSampler(neighbors, batch_size, torch.Generator().manual_seed(seed), CPU)


def ring(n: int, k: int) -> npt.NDArray[np.int64]:
    """Each row has the next k rows around a circle as neighbors."""
    return (np.arange(n)[:, None] + np.arange(1, k + 1)) % n


def test_every_image_once_per_epoch_with_one_of_its_neighbors() -> None:
    pairs = sampler(ring(30, 4), 10)

    for _ in range(3):
        first, second = torch.cat([pairs.sample().view(2, 10) for _ in range(3)], dim=1)
        assert sorted(first.tolist()) == list(range(30))
        assert set(((second - first) % 30).tolist()) <= {1, 2, 3, 4}


def test_neighbors_are_sampled_uniformly() -> None:
    pairs = sampler(ring(50, 5), 50)

    first, second = torch.cat([pairs.sample().view(2, 50) for _ in range(200)], dim=1)
    counts = torch.bincount((second - first) % 50, minlength=6)[1:6]

    assert counts.sum() == 10_000
    # Binomial(10000, 1/5) has a standard deviation of 40.
    assert (counts - 2000).abs().max() < 200


def test_a_batch_may_span_epochs() -> None:
    pairs = sampler(ring(4, 2), 10)

    first = pairs.sample()[:10]

    counts = torch.bincount(first, minlength=4)
    assert counts.min() == 2
    assert counts.max() == 3


def test_missing_neighbors_are_never_sampled() -> None:
    neighbors = np.array([[1, 2, -1], [0, -1, -1], [-1, -1, -1], [0, 1, 2]])
    pairs = sampler(neighbors, 3)

    found = {tuple(pair) for _ in range(100) for pair in pairs.sample().view(2, 3).T.tolist()}

    assert found == {(0, 1), (0, 2), (1, 0), (3, 0), (3, 1), (3, 2)}


@pytest.mark.parametrize("before", [0, 1, 3, 7])
def test_a_restored_sampler_continues_with_the_same_pairs(before: int) -> None:
    uninterrupted, interrupted = sampler(ring(20, 3), 7), sampler(ring(20, 3), 7)
    for _ in range(before):
        uninterrupted.sample()
        interrupted.sample()

    resumed = sampler(ring(20, 3), 7, seed=99)
    resumed.load_state({k: v.clone() for k, v in interrupted.state().items()})

    for _ in range(6):
        assert torch.equal(resumed.sample(), uninterrupted.sample())


def test_a_memory_map_gives_the_same_pairs(tmp_path: Path) -> None:
    path = tmp_path / "n.npy"
    np.save(path, ring(20, 3))

    mapped = sampler(np.load(path, mmap_mode="r"), 8)

    assert torch.equal(mapped.sample(), sampler(ring(20, 3), 8).sample())


def test_invalid_neighbors_are_refused() -> None:
    with pytest.raises(TemiError, match="must be row ids"):
        sampler(np.array([[5], [0]]), 1)
    with pytest.raises(TemiError, match="must be row ids"):
        sampler(np.array([[-2], [0]]), 1)
    with pytest.raises(TemiError, match="-1 must come after"):
        sampler(np.array([[-1, 1], [0, -1]]), 1)
    with pytest.raises(TemiError, match="no image has a neighbor"):
        sampler(np.full((3, 2), -1), 1)
