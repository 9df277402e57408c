"""The teacher's class occupancy and pair weights, computed without gradients."""

import math

import torch
from torch import Tensor


def uniform_log_occupancy(n_heads: int, n_clusters: int) -> Tensor:
    return torch.full((n_heads, n_clusters), -math.log(n_clusters))


@torch.no_grad()
def update_log_occupancy(log_occupancy: Tensor, log_teacher: Tensor, momentum: float) -> Tensor:
    """Return log(m * q~(c) + (1 - m) * mean over the batch of q_t(c|x)), computed in log space.

    The occupancy of an unused cluster keeps decaying; as a plain probability it would reach zero.
    """
    batch = torch.logsumexp(log_teacher, dim=1) - math.log(log_teacher.shape[1])  # (H, C)
    if momentum == 0.0:
        return batch
    return torch.logaddexp(log_occupancy + math.log(momentum), batch + math.log1p(-momentum))


@torch.no_grad()
def agreement(log_teacher: Tensor) -> Tensor:
    """Return w_i(x, x') = sum_c q_t(c|x) q_t(c|x') of each head: (H, B)."""
    first, second = log_teacher.chunk(2, dim=1)  # (H, B, C) each
    return (first + second).exp_().sum(dim=-1)


def other_view(rows: Tensor) -> Tensor:
    """Swap the rows of x and x'."""
    return rows.roll(rows.shape[1] // 2, dims=1)


def pair_mean(rows: Tensor) -> Tensor:
    """Average the values of (x, x') and (x', x): (H, 2B) to (H, B)."""
    first, second = rows.chunk(2, dim=1)
    return 0.5 * (first + second)
