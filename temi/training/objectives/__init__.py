"""The training objectives: TEMI, and PMI, WPMI and SCAN to compare it with.

Log-probabilities hold both views of B pairs as (H, 2B, C): rows 0..B-1 are x, rows B..2B-1 are
x'. All products are computed in log space, so that they cannot underflow.
"""

from typing import Protocol

from torch import Tensor

from temi.config import TrainConfig
from temi.training.objectives.scan import Scan
from temi.training.objectives.temi import Pmi, Temi, Wpmi


class Objective(Protocol):
    """A loss in two parts: the weights need all heads, the losses can be computed per group."""

    def pair_weights(self, own_weights: Tensor) -> Tensor:
        """Return the weight of each pair for each head (H, B), from w_i of ``agreement`` (H, B)."""
        ...

    def losses(
        self, log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, weight: Tensor
    ) -> Tensor:
        """Return the mean loss of each head over the pairs (H,), with gradients to the student."""
        ...


def make_objective(config: TrainConfig) -> Objective:
    if config.objective == "scan":
        return Scan(entropy_weight=config.scan_entropy_weight)
    assert config.beta is not None  # it is resolved
    if config.objective == "temi":
        return Temi(beta=config.beta, n_teams=config.n_teams or 1)
    return {"pmi": Pmi, "wpmi": Wpmi}[config.objective](beta=config.beta)


__all__ = ["Objective", "Pmi", "Scan", "Temi", "Wpmi", "make_objective"]
