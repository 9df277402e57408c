"""What the heads are trained for: TEMI, and the objectives it is compared with.

Log-probabilities carry both views of B pairs as (H, 2B, C): rows 0..B-1 are x, rows B..2B-1 are
x'. Everything stays in log space, so that no product can underflow.
"""

from typing import Protocol

from torch import Tensor

from temi.config import TrainConfig
from temi.training.objectives.pmi import Pmi
from temi.training.objectives.scan import Scan
from temi.training.objectives.temi import Temi
from temi.training.objectives.wpmi import Wpmi


class Objective(Protocol):
    """Weights need the teachers of all heads; losses can then be had for some heads at a time."""

    def weigh(self, agreement: Tensor) -> Tensor:
        """Each head's own agreement on a pair (H, B) to the weight of the pair for it (H, B)."""
        ...

    def losses(
        self, log_student: Tensor, log_teacher: Tensor, log_occupancy: Tensor, weight: Tensor
    ) -> Tensor:
        """Mean loss of each head over the pairs: (H,). Gradients reach the student only."""
        ...


def make_objective(config: TrainConfig) -> Objective:
    if config.objective == "scan":
        return Scan(entropy_weight=config.scan_entropy_weight)
    return {"pmi": Pmi, "wpmi": Wpmi, "temi": Temi}[config.objective](beta=config.beta)


__all__ = ["Objective", "Pmi", "Scan", "Temi", "Wpmi", "make_objective"]
