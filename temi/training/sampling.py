"""Samples the pairs (x, x') of each training step."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.errors import TemiError
from temi.standardize import chunks


class PairSampler:
    """Samples every image once per epoch in random order, with a uniformly drawn neighbor.

    A batch may contain the end of one epoch and the start of the next, so no image is dropped, and
    a set smaller than a batch repeats within it. In ``neighbors``, -1 means "no neighbor" and must
    come after the real neighbors of its row. Images without neighbors are never sampled.
    """

    def __init__(
        self,
        neighbors: npt.NDArray[np.integer],
        batch_size: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self._neighbors = neighbors  # (N, k), perhaps a memory map
        self._counts = count_neighbors(neighbors)  # (N,)
        self._paired = torch.from_numpy(np.flatnonzero(self._counts))
        if len(self._paired) == 0:
            raise TemiError("no image has a neighbor, so there are no pairs to train on")
        self._batch_size = batch_size
        self._generator = generator
        self._device = device
        self._rng_state = generator.get_state()  # at the start of the epoch, to draw it again
        self._epoch = torch.empty((2, 0), dtype=torch.int64, device=device)
        self._position = 0

    def sample(self) -> Tensor:
        """Return the ids of B images, then those of their B neighbors: (2B,), on the device."""
        blocks, missing = [], self._batch_size
        while missing > 0:
            if self._position == self._epoch.shape[1]:
                self._draw_epoch()
            block = self._epoch[:, self._position : self._position + missing]
            blocks.append(block)
            self._position += block.shape[1]
            missing -= block.shape[1]
        return torch.cat(blocks, dim=1).reshape(-1)

    def _draw_epoch(self) -> None:
        """Copy a whole epoch to the device at once, so that no step waits for a copy."""
        # Drawn on the CPU, so that a seed gives the same pairs on every device.
        self._rng_state = self._generator.get_state()
        order = self._paired[torch.randperm(len(self._paired), generator=self._generator)]
        uniform = torch.rand(len(self._counts), generator=self._generator, dtype=torch.float64)
        neighbors = torch.from_numpy(self._sample_neighbors(uniform.numpy()))[order]
        self._epoch = torch.stack([order, neighbors]).to(self._device)
        self._position = 0

    def _sample_neighbors(self, uniform: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """Return one neighbor of every row, or -1; reads the rows in the order of the file."""
        sampled = np.empty(len(uniform), dtype=np.int64)
        for rows in chunks(len(uniform)):
            column = (uniform[rows] * self._counts[rows]).astype(np.int64)
            sampled[rows] = np.take_along_axis(self._neighbors[rows], column[:, None], axis=1)[:, 0]
        return sampled

    def state(self) -> dict[str, Tensor]:
        return {"rng_state": self._rng_state, "position": torch.tensor(self._position)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._generator.set_state(state["rng_state"].clone())
        self._draw_epoch()
        self._position = int(state["position"])


def count_neighbors(neighbors: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    counts = np.empty(len(neighbors), dtype=np.int64)
    for rows in chunks(len(neighbors)):
        block = np.asarray(neighbors[rows])
        if block.min() < -1 or block.max() >= len(neighbors):
            raise TemiError(
                f"neighbors must be row ids from 0 to {len(neighbors) - 1} or -1, "
                f"but range from {block.min()} to {block.max()}"
            )
        present = block >= 0
        counts[rows] = present.sum(axis=1)
        if (np.diff(present.astype(np.int8), axis=1) > 0).any():
            raise TemiError("in each row of neighbors, -1 must come after the row's neighbors")
    return counts
