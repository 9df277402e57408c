"""SCAN in the student-teacher frame: agreement on pairs, and even use of the clusters."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from temi.training.objectives.teacher import other_view, pair_mean


@dataclass(frozen=True, kw_only=True)
class Scan:
    entropy_weight: float  # lambda; the paper's grid search found 4

    def weigh(self, agreement: Tensor) -> Tensor:
        return torch.ones_like(agreement)

    def losses(
        self,
        log_student: Tensor,
        log_teacher: Tensor,
        log_occupancy: Tensor,  # noqa: ARG002  SCAN looks at the batch alone
        weight: Tensor,
    ) -> Tensor:
        consistency = -pair_mean(
            torch.logsumexp(log_student + other_view(log_teacher.detach()), dim=-1)
        )  # (H, B)
        log_use = torch.logsumexp(log_student, dim=1) - math.log(log_student.shape[1])  # (H, C)
        negative_entropy = (log_use.exp() * log_use).sum(dim=-1)  # (H,)
        return (weight * consistency).mean(dim=1) + self.entropy_weight * negative_entropy
