"""TEMI: all heads trust a pair as far as their teachers do on average."""

from dataclasses import dataclass

from torch import Tensor

from temi.training.objectives.pmi import Pmi


@dataclass(frozen=True, kw_only=True)
class Temi(Pmi):
    def weigh(self, agreement: Tensor) -> Tensor:
        return agreement.mean(dim=0, keepdim=True).expand_as(agreement)
