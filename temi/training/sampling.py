"""Which pairs a step sees."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.errors import TemiError
from temi.standardize import chunks


class PairSampler:
    """Every image once an epoch in random order, each with a uniform draw from its neighbors.

    Epochs follow each other without a gap: a batch may end one shuffle and begin the next, so
    no image is ever dropped and a set smaller than a batch simply repeats within it. An entry of
    -1 is no neighbor; rows hold their neighbors first. Images without any are never drawn.
    """

    def __init__(
        self,
        neighbors: npt.NDArray[np.integer],
        batch_size: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self._neighbors = neighbors  # (N, k), perhaps a memory map
        self._counts = _count_neighbors(neighbors)  # (N,)
        self._paired = torch.from_numpy(np.flatnonzero(self._counts))
        if len(self._paired) == 0:
            raise TemiError("no image has a neighbor to be paired with")
        self._batch_size = batch_size
        self._generator = generator
        self._device = device
        self._before_epoch = generator.get_state()  # to draw the current epoch once more
        self._epoch = torch.empty((2, 0), dtype=torch.int64, device=device)
        self._position = 0

    def draw(self) -> Tensor:
        """Ids of B images, then ids of their B partners: (2B,), on the device."""
        pieces, missing = [], self._batch_size
        while missing > 0:
            if self._position == self._epoch.shape[1]:
                self._draw_epoch()
            piece = self._epoch[:, self._position : self._position + missing]
            pieces.append(piece)
            self._position += piece.shape[1]
            missing -= piece.shape[1]
        return torch.cat(pieces, dim=1).reshape(-1)

    def _draw_epoch(self) -> None:
        """A whole epoch goes to the device at once: no step has to wait for a copy."""
        # Draws happen on the CPU, so that a seed means the same pairs on every device.
        self._before_epoch = self._generator.get_state()
        order = self._paired[torch.randperm(len(self._paired), generator=self._generator)]
        chance = torch.rand(len(self._counts), generator=self._generator, dtype=torch.float64)
        partners = torch.from_numpy(self._choose(chance.numpy()))[order]
        self._epoch = torch.stack([order, partners]).to(self._device)
        self._position = 0

    def _choose(self, chance: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
        """A neighbor of every row (-1 where there is none), read in the order of the file."""
        chosen = np.empty(len(chance), dtype=np.int64)
        for rows in chunks(len(chance)):
            column = (chance[rows] * self._counts[rows]).astype(np.int64)
            chosen[rows] = np.take_along_axis(self._neighbors[rows], column[:, None], axis=1)[:, 0]
        return chosen

    def state(self) -> dict[str, Tensor]:
        return {"before_epoch": self._before_epoch, "position": torch.tensor(self._position)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self._generator.set_state(state["before_epoch"].clone())
        self._draw_epoch()
        self._position = int(state["position"])


def _count_neighbors(neighbors: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
    counts = np.empty(len(neighbors), dtype=np.int64)
    for rows in chunks(len(neighbors)):
        block = np.asarray(neighbors[rows])
        if block.min() < -1 or block.max() >= len(neighbors):
            raise TemiError("neighbors point outside the features")
        present = block >= 0
        counts[rows] = present.sum(axis=1)
        if (np.diff(present.astype(np.int8), axis=1) > 0).any():
            raise TemiError("rows of neighbors must hold their neighbors first and then -1")
    return counts
