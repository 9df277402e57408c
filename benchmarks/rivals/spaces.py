"""The space in which linear rivals work, and a linear head in it."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from benchmarks.rivals.base import Features, Fitted, Labels
from temi.standardize import Standardizer, fit_standardizer
from temi.training.inputs import find_directions

PROJECTION_DIM = 256


@dataclass(frozen=True, kw_only=True)
class UnitSpace:
    """Standardized features in their principal directions, each row scaled to length one."""

    standardizer: Standardizer
    directions: Tensor | None  # (D, P), or None for all dimensions

    @classmethod
    def fit(cls, features: Features) -> "UnitSpace":
        standardizer = fit_standardizer(features)
        directions = find_directions(features, standardizer, PROJECTION_DIM)
        return cls(standardizer=standardizer, directions=directions)

    def rows(self, features: Features) -> Tensor:
        rows = torch.from_numpy(self.standardizer.apply(features))  # (N, D)
        return normalize(rows if self.directions is None else rows @ self.directions, dim=-1)

    def fitted(
        self, features: Features, weight: Tensor, bias: Tensor, labels: Labels | None = None
    ) -> Fitted:
        """Return the head with weight (P, C) and bias (C,); if None, ``labels`` are its own."""
        weight, bias = weight.detach().clone(), bias.detach().clone()

        def predict(new: Features) -> Labels:
            logits = self.rows(new) @ weight + bias  # (M, C)
            return np.asarray(logits.argmax(dim=-1).numpy(), dtype=np.int64)

        return Fitted(labels=predict(features) if labels is None else labels, predict=predict)
