"""Pointwise mutual information: every pair counts alike."""

from dataclasses import dataclass

import torch
from torch import Tensor

from temi.training.objectives.teacher import other_view, pair_mean


@dataclass(frozen=True, kw_only=True)
class Pmi:
    beta: float

    def weigh(self, agreement: Tensor) -> Tensor:
        return torch.ones_like(agreement)

    def losses(
        self, log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, weight: Tensor
    ) -> Tensor:
        losses = pair_loss(log_student, log_teacher, log_occupancy, self.beta)  # (H, B)
        return (weight * losses).mean(dim=1)


def pair_loss(
    log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, beta: float
) -> Tensor:
    """L(x, x') = -(pmi(x, x') + pmi(x', x)) / 2 for every head and pair: (H, B)."""
    with torch.no_grad():
        constant = beta * other_view(log_teacher) - log_occupancy.unsqueeze(1)  # (H, 2B, C)
    pmi = torch.logsumexp(beta * log_student + constant, dim=-1)  # (H, 2B)
    return -pair_mean(pmi)
