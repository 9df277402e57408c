"""Weighted PMI: each head trusts a pair as far as its own teacher does."""

from dataclasses import dataclass

from torch import Tensor

from temi.training.objectives.pmi import Pmi


@dataclass(frozen=True, kw_only=True)
class Wpmi(Pmi):
    def weigh(self, agreement: Tensor) -> Tensor:
        return agreement
