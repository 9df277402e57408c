"""The inputs of the heads: standardized features, optionally projected to principal directions.

If all rows fit in memory, they are transformed once. Otherwise they are read (from a memory map)
and transformed for each batch, which costs a few percent of a step.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.errors import TemiError
from temi.standardize import Standardizer, chunks, fit_standardizer
from temi.training.memory import RESIDENT_BYTES
from temi.training.projection import principal_directions

_TENSORS = ("mean", "std", "directions")


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
        self._fits = len(self) * self.dim * 4 <= RESIDENT_BYTES

    @classmethod
    def from_tensors(
        cls,
        features: npt.NDArray[np.floating],
        tensors: Mapping[str, Tensor],
        device: torch.device,
    ) -> "TrainingInputs":
        """Use the tensors of ``fit_inputs`` or ``tensors``; they are copied."""
        own = {name: tensors[name].clone() for name in _TENSORS if name in tensors}
        standardizer = Standardizer(mean=own["mean"].numpy(), std=own["std"].numpy())
        return cls(features, standardizer, own.get("directions"), device)

    def tensors(self) -> dict[str, Tensor]:
        """Return mean, standard deviation and, if there is a projection, its directions."""
        return _as_tensors(self.standardizer, self.directions)

    def __len__(self) -> int:
        return int(self._features.shape[0])

    def rows(self, ids: Tensor) -> Tensor:
        """Return the transformed rows with these ids: (n, P)."""
        if self._fits:
            return self._resident[ids]
        return self._transform(self._features[ids.cpu().numpy()])

    def _transform(self, block: npt.NDArray[np.floating]) -> Tensor:
        rows = torch.from_numpy(self.standardizer.apply(block)).to(self._device)
        return rows if self._directions is None else rows @ self._directions

    @cached_property
    def _resident(self) -> Tensor:
        """All rows, transformed when the first are needed."""
        transformed = torch.empty((len(self), self.dim), device=self._device)
        for rows in chunks(len(self)):
            transformed[rows] = self._transform(self._features[rows])
        return transformed


def fit_inputs(features: npt.NDArray[np.floating], projection_dim: int | None) -> dict[str, Tensor]:
    """Compute the standardization and projection from all rows."""
    standardizer = fit_standardizer(features)
    if not np.isfinite(standardizer.mean).all():
        raise TemiError("features contain NaN or infinity")
    return _as_tensors(standardizer, find_directions(features, standardizer, projection_dim))


def _as_tensors(standardizer: Standardizer, directions: Tensor | None) -> dict[str, Tensor]:
    tensors = [torch.from_numpy(standardizer.mean), torch.from_numpy(standardizer.std), directions]
    named = zip(_TENSORS, tensors, strict=True)
    return {name: tensor for name, tensor in named if tensor is not None}


def find_directions(
    features: npt.NDArray[np.floating], standardizer: Standardizer, projection_dim: int | None
) -> Tensor | None:
    """Return the principal directions (D, P), or None if the features have at most P dimensions."""
    if projection_dim is None or projection_dim >= features.shape[1]:
        return None
    return torch.from_numpy(principal_directions(features, standardizer, projection_dim))
