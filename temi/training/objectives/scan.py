"""The SCAN baseline with student and teacher: consistency of pairs plus entropy of the clusters."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from temi.training.objectives.teacher import other_view, pair_mean


@dataclass(frozen=True, kw_only=True)
class Scan:
    entropy_weight: float  # lambda; the paper's grid search found 4

    def pair_weights(self, own_weights: Tensor) -> Tensor:
        return torch.ones_like(own_weights)

    def losses(
        self,
        log_student: Tensor,
        log_teacher: Tensor,
        log_occupancy: Tensor,  # noqa: ARG002  SCAN uses the occupancy of the batch
        weight: Tensor,
    ) -> Tensor:
        consistency = -pair_mean(
            torch.logsumexp(log_student + other_view(log_teacher.detach()), dim=-1)
        )  # (H, B)
        log_mean = torch.logsumexp(log_student, dim=1) - math.log(log_student.shape[1])  # (H, C)
        negative_entropy = (log_mean.exp() * log_mean).sum(dim=-1)  # (H,)
        return (weight * consistency).mean(dim=1) + self.entropy_weight * negative_entropy
