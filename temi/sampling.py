"""Which pairs a step sees."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


class PairSampler:
    """Every image once an epoch in random order, each with a uniform draw from its neighbors.

    Epochs follow each other without a gap: a batch may end one shuffle and begin the next, so
    no image is ever dropped and a set smaller than a batch simply repeats within it.
    """

    def __init__(
        self,
        neighbors: npt.NDArray[np.integer],
        batch_size: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        # Draws happen on the CPU, so that a seed means the same pairs on every device.
        self._neighbors = torch.from_numpy(np.array(neighbors, dtype=np.int64))  # (N, k)
        self._batch_size = batch_size
        self._device = device
        self._generator = generator
        self._order = torch.empty(0, dtype=torch.int64)  # what is left of the current shuffle

    def draw(self) -> tuple[Tensor, Tensor]:
        """Ids of x and x': (B,) each, on the device."""
        n, k = self._neighbors.shape
        while len(self._order) < self._batch_size:
            shuffle = torch.randperm(n, generator=self._generator)
            self._order = torch.cat([self._order, shuffle])
        first, self._order = self._order[: self._batch_size], self._order[self._batch_size :]
        column = torch.randint(k, (self._batch_size,), generator=self._generator)
        second = self._neighbors[first, column]
        return first.to(self._device), second.to(self._device)

    def state(self) -> dict[str, Tensor]:
        return {"order": self._order, "rng": self._generator.get_state()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._order = state["order"].clone()
        self._generator.set_state(state["rng"].clone())
