"""AdamW whose state can be stored and restored exactly."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

_SLOTS = ("exp_avg", "exp_avg_sq")

Part = tuple[list[nn.Parameter], float]
"""Parameters that share a learning rate, and their weight decay."""


class RestorableAdamW:
    def __init__(self, module: nn.Module, parts: Sequence[Part]) -> None:
        """``parts`` must cover all parameters of the module."""
        self._named = dict(module.named_parameters())
        groups = [{"params": params, "weight_decay": decay} for params, decay in parts]
        self._adam = torch.optim.AdamW(groups, betas=(0.9, 0.999), fused=True)
        for parameter in self._named.values():
            self._adam.state[parameter] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }

    def step(self, *learning_rates: float) -> None:
        """Apply the accumulated gradients with a learning rate for each part, and clear them."""
        for group, rate in zip(self._adam.param_groups, learning_rates, strict=True):
            group["lr"] = rate
        self._adam.step()
        self._adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Tensor]:
        """Return the moments of every parameter, in its shape; the caller stores the step."""
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
