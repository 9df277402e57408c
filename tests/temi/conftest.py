"""Synthetic data for the tests of the method."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
import pytest
import torch

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Use one thread: sums over several threads may round differently between runs."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def mixture() -> Mixture:
    def make(
        n: int, *, n_groups: int, dim: int = 16, spread: float = 0.25, seed: int = 0
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
        """Points around ``n_groups`` distant centers, with their group: (n, dim) and (n,)."""
        rng = np.random.default_rng(seed)
        labels = np.arange(n) % n_groups
        centers = rng.normal(size=(n_groups, dim))
        points = centers[labels] + spread * rng.normal(size=(n, dim))
        return points.astype(np.float32), labels.astype(np.int64)

    return make
