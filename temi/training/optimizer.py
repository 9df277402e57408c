"""AdamW whose state can be stored and restored exactly.

The function behind ``torch.optim.AdamW``: the class imports torch's compiler with its first step,
which takes a process more than a second.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.optim.adamw import adamw

_SLOTS = ("exp_avg", "exp_avg_sq")

Part = tuple[list[nn.Parameter], float]
"""Parameters that share a learning rate, and their weight decay."""


class RestorableAdamW:
    def __init__(self, module: nn.Module, parts: Sequence[Part]) -> None:
        """``parts`` must cover all parameters of the module."""
        self._named = dict(module.named_parameters())
        self._parts = parts
        self._slots = {
            parameter: {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
            for parameter in self._named.values()
        }

    @torch.no_grad()
    def step(self, *learning_rates: float) -> None:
        """Apply the accumulated gradients with a learning rate for each part, and clear them."""
        for (parameters, decay), rate in zip(self._parts, learning_rates, strict=True):
            self._step(parameters, decay, rate)
        for parameter in self._named.values():
            parameter.grad = None

    def _step(self, parameters: list[nn.Parameter], decay: float, rate: float) -> None:
        used = [parameter for parameter in parameters if parameter.grad is not None]
        slots = [self._slots[parameter] for parameter in used]
        adamw(
            list(used),
            [parameter.grad for parameter in used if parameter.grad is not None],
            [slot["exp_avg"] for slot in slots],
            [slot["exp_avg_sq"] for slot in slots],
            [],
            [slot["step"] for slot in slots],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=rate,
            weight_decay=decay,
            eps=1e-8,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """Return the moments of every parameter, in its shape; the caller stores the step."""
        return {
            f"{name}.{slot}": self._slots[parameter][slot]
            for name, parameter in self._named.items()
            for slot in _SLOTS
        }

    def load_state(self, state: Mapping[str, Tensor], step: int) -> None:
        for name, tensor in self.state().items():
            tensor.copy_(state[name])
        for slots in self._slots.values():
            slots["step"].fill_(step)
