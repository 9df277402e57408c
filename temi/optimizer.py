"""AdamW over stacked heads, with a state that can be stored and restored bit for bit."""

from collections.abc import Mapping

import torch
from torch import Tensor

from temi.heads import Heads

_SLOTS = ("exp_avg", "exp_avg_sq")


class HeadOptimizer:
    def __init__(self, heads: Heads, *, weight_decay: float) -> None:
        self._named = dict(heads.named_parameters())
        groups = [
            {"params": heads.decayed(), "weight_decay": weight_decay},
            {"params": heads.undecayed(), "weight_decay": 0.0},
        ]
        self._adam = torch.optim.AdamW(groups, betas=(0.9, 0.999), fused=True)
        for parameter in self._named.values():
            self._adam.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

    def minimize(self, loss: Tensor, learning_rate: float) -> None:
        for group in self._adam.param_groups:
            group["lr"] = learning_rate
        torch.autograd.backward(loss)
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)  # gradients live no longer than the step

    def state(self) -> dict[str, Tensor]:
        """Averages, each with the axis of heads first; the step is the trainer's."""
        return {
            f"{name}.{slot}": self._adam.state[parameter][slot]
            for name, parameter in self._named.items()
            for slot in _SLOTS
        }

    def load_state(self, state: Mapping[str, Tensor], step: int) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
        for parameter in self._named.values():
            self._adam.state[parameter]["step"].fill_(step)
