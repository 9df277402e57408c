"""What the heads see: standardized features, in their informative subspace if one is asked for.

Rows of a set that fits in memory are prepared once. Rows of a larger one are read from where
they are (a memory map) and prepared for each batch, which costs a few percent of a step.
"""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.errors import TemiError
from temi.standardize import Standardizer, chunks, fit_standardizer
from temi.training.memory import RESIDENT_BYTES
from temi.training.projection import principal_directions

_PREPARED = ("mean", "std", "directions")


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

    @classmethod
    def from_tensors(
        cls,
        features: npt.NDArray[np.floating],
        prepared: Mapping[str, Tensor],
        device: torch.device,
    ) -> "TrainingInputs":
        """With what ``prepare`` found, or ``tensors`` gave; nothing is shared with them."""
        own = {name: prepared[name].clone() for name in _PREPARED if name in prepared}
        standardizer = Standardizer(mean=own["mean"].numpy(), std=own["std"].numpy())
        return cls(features, standardizer, own.get("directions"), device)

    def tensors(self) -> dict[str, Tensor]:
        """What is done to every row."""
        return _as_tensors(self.standardizer, self.directions)

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


def prepare(features: npt.NDArray[np.floating], projection_dim: int | None) -> dict[str, Tensor]:
    """What is to be done to every row; reads all of them."""
    standardizer = fit_standardizer(features)
    if not np.isfinite(standardizer.mean).all():
        raise TemiError("features contain NaN or infinity")
    return _as_tensors(standardizer, find_directions(features, standardizer, projection_dim))


def _as_tensors(standardizer: Standardizer, directions: Tensor | None) -> dict[str, Tensor]:
    tensors = [torch.from_numpy(standardizer.mean), torch.from_numpy(standardizer.std), directions]
    named = zip(_PREPARED, tensors, strict=True)
    return {name: tensor for name, tensor in named if tensor is not None}


def find_directions(
    features: npt.NDArray[np.floating], standardizer: Standardizer, wanted: int | None
) -> Tensor | None:
    """None where the features have no more dimensions than are wanted."""
    if wanted is None or wanted >= features.shape[1]:
        return None
    return torch.from_numpy(principal_directions(features, standardizer, wanted))
