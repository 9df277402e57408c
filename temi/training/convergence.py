"""Have the assignments stopped moving?"""

from collections.abc import Mapping

import torch
from torch import Tensor

from temi.training.heads import Heads
from temi.training.inputs import TrainingInputs

LOOK_EVERY = 50  # steps between two looks at the assignments
TOLERANCE = 0.02  # share of the best head's assignments that may move between two looks
QUIET_LOOKS = 2  # looks in a row below the tolerance that count as settled
_SAMPLE = 2048  # images looked at; enough to tell two percent from nothing


class ConvergenceMonitor:
    """Compares the best head's assignments of a fixed sample of images from look to look.

    Only that head goes into the model; weak heads may wander for ever.
    """

    def __init__(self, inputs: TrainingInputs, n_heads: int) -> None:
        stride = max(1, len(inputs) // _SAMPLE)
        self._sample = inputs.rows(torch.arange(0, len(inputs), stride)[:_SAMPLE])  # (S, P)
        shape = (n_heads, len(self._sample))
        self.assignments = torch.full(shape, -1, dtype=torch.int32, device=self._sample.device)
        self.changed: float | None = None
        self.quiet_looks = 0

    @property
    def settled(self) -> bool:
        return self.quiet_looks >= QUIET_LOOKS

    @torch.no_grad()
    def assign(self, teacher: Heads) -> Tensor:
        """Clusters of the sample by each of these heads: (h, S)."""
        # Few rows at a time: with 25,000 clusters, logits of the whole sample are gigabytes.
        blocks = [teacher(block).argmax(dim=-1) for block in torch.split(self._sample, 128)]
        return torch.cat(blocks, dim=1).to(torch.int32)

    def compare(self, now: Tensor, losses: Tensor) -> None:
        """Another look: assignments by all heads (H, S); ``losses`` (H,) tell the best head."""
        now = now.to(self.assignments.device)
        if int(self.assignments[0, 0]) >= 0:
            best = int(losses.argmin())
            self.changed = float((now[best] != self.assignments[best]).float().mean())
            self.quiet_looks = self.quiet_looks + 1 if self.changed < TOLERANCE else 0
        self.assignments = now

    def state(self) -> dict[str, Tensor]:
        changed = -1.0 if self.changed is None else self.changed
        return {
            "assignments": self.assignments,
            "quiet_looks": torch.tensor(self.quiet_looks),
            "changed": torch.tensor(changed, dtype=torch.float64),
        }

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.assignments = state["assignments"].to(self.assignments)
        self.quiet_looks = int(state["quiet_looks"])
        changed = float(state["changed"])
        self.changed = None if changed < 0 else changed
