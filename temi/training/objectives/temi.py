"""The TEMI objective, and the simpler PMI and WPMI that the paper compares it with.

The three share the loss of a pair and differ in the weight of the pair.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from temi.training.objectives.teacher import other_view, pair_mean


@dataclass(frozen=True, kw_only=True)
class Pmi:
    """Pointwise mutual information: every pair has weight 1."""

    beta: float

    def pair_weights(self, own_weights: Tensor) -> Tensor:
        return torch.ones_like(own_weights)

    def losses(
        self, log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, weight: Tensor
    ) -> Tensor:
        losses = pair_loss(log_student, log_teacher, log_occupancy, self.beta)  # (H, B)
        return (weight * losses).mean(dim=1)


@dataclass(frozen=True, kw_only=True)
class Wpmi(Pmi):
    """Weighted PMI: each head uses the weight of its own teacher."""

    def pair_weights(self, own_weights: Tensor) -> Tensor:
        return own_weights


@dataclass(frozen=True, kw_only=True)
class Temi(Pmi):
    """TEMI: all heads of a team use the mean weight of its teachers."""

    n_teams: int = 1

    def pair_weights(self, own_weights: Tensor) -> Tensor:
        teams = own_weights.tensor_split(self.n_teams)
        return torch.cat([team.mean(dim=0, keepdim=True).expand_as(team) for team in teams])


def pair_loss(
    log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, beta: float
) -> Tensor:
    """L(x, x') = -(pmi(x, x') + pmi(x', x)) / 2 for every head and pair: (H, B)."""
    with torch.no_grad():
        constant = beta * other_view(log_teacher) - log_occupancy.unsqueeze(1)  # (H, 2B, C)
    pmi = torch.logsumexp(beta * log_student + constant, dim=-1)  # (H, 2B)
    return -pair_mean(pmi)
