"""Detects when the cluster assignments no longer change."""

from collections.abc import Mapping

import torch
from torch import Tensor

from temi.training.heads import Heads
from temi.training.inputs import TrainingInputs

CHECK_EVERY = 50  # steps between two checks
TOLERANCE = 0.02  # share of the best head's assignments that may change between two checks
PATIENCE = 2  # consecutive checks below the tolerance until the assignments count as settled
_SAMPLE = 2048  # images checked; enough to distinguish two percent from zero


class ConvergenceMonitor:
    """Compares the best head's assignments of a fixed sample of images between two checks.

    Only the best head becomes the model; the assignments of weak heads may never settle.
    """

    def __init__(self, inputs: TrainingInputs, n_heads: int) -> None:
        stride = max(1, len(inputs) // _SAMPLE)
        self._sample = inputs.rows(torch.arange(0, len(inputs), stride)[:_SAMPLE])  # (S, P)
        shape = (n_heads, len(self._sample))
        self.assignments = torch.full(shape, -1, dtype=torch.int32, device=self._sample.device)
        self.changed: float | None = None
        self.stable_checks = 0

    @property
    def settled(self) -> bool:
        return self.stable_checks >= PATIENCE

    @torch.no_grad()
    def assign(self, teacher: Heads) -> Tensor:
        """Return the cluster of every sampled image under each of these heads: (h, S)."""
        # Few rows at a time: with 25,000 clusters, logits of the whole sample are gigabytes.
        blocks = [teacher(block).argmax(dim=-1) for block in torch.split(self._sample, 128)]
        return torch.cat(blocks, dim=1).to(torch.int32)

    def update(self, assignments: Tensor, losses: Tensor) -> None:
        """Compare new assignments of all heads (H, S); the best head has the lowest of ``losses``
        (H,)."""
        assignments = assignments.to(self.assignments.device)
        if int(self.assignments[0, 0]) >= 0:
            best = int(losses.argmin())
            self.changed = float((assignments[best] != self.assignments[best]).float().mean())
            self.stable_checks = self.stable_checks + 1 if self.changed < TOLERANCE else 0
        self.assignments = assignments

    def state(self) -> dict[str, Tensor]:
        changed = -1.0 if self.changed is None else self.changed
        return {
            "assignments": self.assignments,
            "stable_checks": torch.tensor(self.stable_checks),
            "changed": torch.tensor(changed, dtype=torch.float64),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.assignments = state["assignments"].to(self.assignments)
        self.stable_checks = int(state["stable_checks"])
        changed = float(state["changed"])
        self.changed = None if changed < 0 else changed
