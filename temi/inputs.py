"""What the heads see: standardized features, in their informative subspace if one is asked for.

Rows of a set that fits in memory are prepared once. Rows of a larger one are read from where
they are (a memory map) and prepared for each batch, which costs a few percent of a step.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.projection import principal_directions
from temi.standardize import Standardizer, chunks

# A fixed size, not a share of this machine's memory: the same run rounds the same everywhere.
RESIDENT_BYTES = 4 << 30


class TrainingInputs:
    def __init__(
        self,
        features: npt.NDArray[np.floating],
        standardizer: Standardizer,
        directions: Tensor | None,
        device: torch.device,
    ) -> None:
        self.standardizer = standardizer
        self.directions = directions  # (D, P), or None for all dimensions
        self.dim = int(features.shape[1] if directions is None else directions.shape[1])
        self._features = features
        self._device = device
        self._directions = None if directions is None else directions.to(device)
        self._resident = self._prepare_all() if len(self) * self.dim * 4 <= RESIDENT_BYTES else None

    def __len__(self) -> int:
        return int(self._features.shape[0])

    def rows(self, ids: Tensor) -> Tensor:
        """The prepared rows with these ids: (n, P)."""
        if self._resident is not None:
            return self._resident[ids]
        return self._prepare(self._features[ids.cpu().numpy()])

    def _prepare(self, block: npt.NDArray[np.floating]) -> Tensor:
        rows = torch.from_numpy(self.standardizer.apply(block)).to(self._device)
        return rows if self._directions is None else rows @ self._directions

    def _prepare_all(self) -> Tensor:
        prepared = torch.empty((len(self), self.dim), device=self._device)
        for rows in chunks(len(self)):
            prepared[rows] = self._prepare(self._features[rows])
        return prepared


def find_directions(
    features: npt.NDArray[np.floating], standardizer: Standardizer, wanted: int | None
) -> Tensor | None:
    """None where the features have no more dimensions than are wanted."""
    if wanted is None or wanted >= features.shape[1]:
        return None
    return torch.from_numpy(principal_directions(features, standardizer, wanted))
