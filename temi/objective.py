"""The TEMI objective, in log space throughout so that no product can underflow.

Arguments carry both views of B pairs as (H, 2B, C): rows 0..B-1 are x, rows B..2B-1 are x'.
PMI and WPMI differ from TEMI only in the weight given to a pair (1, or the head's own w_i),
so they belong beside ``ensemble_weight``; SCAN needs a function of its own beside ``temi_loss``.
"""

import math

import torch
from torch import Tensor


def uniform_log_occupancy(n_heads: int, n_clusters: int) -> Tensor:
    return torch.full((n_heads, n_clusters), -math.log(n_clusters))


@torch.no_grad()
def update_log_occupancy(log_occupancy: Tensor, log_teacher: Tensor, momentum: float) -> Tensor:
    """log of m * q~(c) + (1 - m) * mean over the batch of q_t(c|x), without leaving log space.

    A cluster that no image uses decays for ever; as a plain probability it would reach zero.
    """
    batch = torch.logsumexp(log_teacher, dim=1) - math.log(log_teacher.shape[1])  # (H, C)
    if momentum == 0.0:
        return batch
    return torch.logaddexp(log_occupancy + math.log(momentum), batch + math.log1p(-momentum))


def pair_loss(
    log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, beta: float
) -> Tensor:
    """L(x, x') = -(pmi(x, x') + pmi(x', x)) / 2 for every head and pair: (H, B)."""
    n_pairs = log_student.shape[1] // 2
    other_view = log_teacher.roll(n_pairs, dims=1)  # row of x now holds the teacher on x'
    terms = beta * (log_student + other_view) - log_occupancy.unsqueeze(1)  # (H, 2B, C)
    pmi = torch.logsumexp(terms, dim=-1)  # (H, 2B)
    return -0.5 * (pmi[:, :n_pairs] + pmi[:, n_pairs:])


@torch.no_grad()
def ensemble_weight(log_teacher: Tensor) -> Tensor:
    """Mean over heads of w_j(x, x') = sum_c q_t(c|x) q_t(c|x'): (B,)."""
    first, second = log_teacher.chunk(2, dim=1)  # (H, B, C) each
    return (first + second).exp().sum(dim=-1).mean(dim=0)


def temi_loss(
    log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, beta: float
) -> Tensor:
    """Mean weighted loss of each head over the pairs: (H,). Gradients reach the student only."""
    log_teacher = log_teacher.detach()
    losses = pair_loss(log_student, log_teacher, log_occupancy.detach(), beta)  # (H, B)
    return (ensemble_weight(log_teacher) * losses).mean(dim=1)
