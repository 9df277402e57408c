"""Some of the heads with all that belongs to them: student, teacher, optimizer, occupancy.

Heads meet only in the weight of a pair, so a step can walk over them group by group. A group's
activations then stay in the caches of a CPU, and a run with many heads and clusters never holds
more than one group's logits and gradients of the student.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from temi.config import TrainConfig
from temi.precision import matrix_dtype, products_in
from temi.training.heads import Heads, update_teacher
from temi.training.objectives import Objective
from temi.training.objectives.teacher import uniform_log_occupancy, update_log_occupancy
from temi.training.optimizer import RestorableAdamW

# A CPU's cores share the groups, so there must be many of about one size; two heads at a time
# are as fast as more. A GPU takes as many as its memory holds next to everything else, counted in
# numbers of the widest activation.
_CPU_HEADS = 2
_GPU_ACTIVATIONS = 200_000_000


def heads_per_group(config: TrainConfig, device: torch.device) -> int:
    assert config.batch_size is not None
    if device.type == "cpu":
        return min(config.n_heads, _CPU_HEADS)
    widest = 2 * config.batch_size * max(config.hidden_dim, config.n_clusters)
    return min(config.n_heads, max(1, _GPU_ACTIVATIONS // widest))


def new_heads(config: TrainConfig, n_heads: int, dim: int, generator: torch.Generator) -> Heads:
    return Heads(
        n_heads=n_heads,
        dim=dim,
        hidden_dim=config.hidden_dim,
        bottleneck_dim=config.bottleneck_dim,
        n_clusters=config.n_clusters,
        generator=generator,
    )


@dataclass(frozen=True, kw_only=True)
class Step:
    """What is the same for all groups in one step."""

    views: Tensor  # (2B, P)
    objective: Objective
    learning_rate: float
    teacher_momentum: float


class HeadGroup:
    def __init__(
        self,
        config: TrainConfig,
        *,
        n_heads: int,
        dim: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self._config = config
        self._device = device
        self._dtype = matrix_dtype(config.precision)
        self.student = new_heads(config, n_heads, dim, generator).to(device)
        self.teacher = copy.deepcopy(self.student).requires_grad_(False)
        self._optimizer = RestorableAdamW(
            self.student,
            [(self.student.decayed(), config.weight_decay), (self.student.undecayed(), 0.0)],
        )
        self._log_occupancy = uniform_log_occupancy(n_heads, config.n_clusters).to(device)

    @torch.no_grad()
    def teach(self, views: Tensor) -> Tensor:
        """Log-probabilities of the teacher (h, 2B, C), which also move the occupancy."""
        log_teacher = self._log_probs(self.teacher, views)
        self._log_occupancy = update_log_occupancy(
            self._log_occupancy, log_teacher, self._config.occupancy_momentum
        )
        return log_teacher

    def learn(self, log_teacher: Tensor, weight: Tensor, *, step: Step) -> Tensor:
        """One step of the student and, behind it, the teacher; the losses were (h,)."""
        log_student = self._log_probs(self.student, step.views)  # (h, 2B, C)
        losses = step.objective.losses(log_student, log_teacher, self._log_occupancy, weight)
        # The total is the mean over all heads, of which this group holds only some.
        torch.autograd.backward(losses.sum() / self._config.n_heads)
        self._optimizer.step(step.learning_rate, step.learning_rate)
        update_teacher(self.teacher, self.student, step.teacher_momentum)
        return losses.detach()

    def _log_probs(self, heads: Heads, views: Tensor) -> Tensor:
        with products_in(self._dtype, self._device):
            logits: Tensor = heads(views)
        return logits.float().div_(self._config.temperature).log_softmax(dim=-1)

    def state(self) -> dict[str, Tensor]:
        """Tensors that begin with the axis of heads, so that groups can be joined."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "student": dict(self.student.named_parameters()),
            "teacher": dict(self.teacher.named_parameters()),
            "optimizer": self._optimizer.state(),
        }
        named = {f"{part}.{name}": t for part, ts in parts.items() for name, t in ts.items()}
        return named | {"log_occupancy": self._log_occupancy}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor], step: int) -> None:
        self.student.load_state_dict(part(state, "student"))
        self.teacher.load_state_dict(part(state, "teacher"))
        self._optimizer.load_state(part(state, "optimizer"), step)
        self._log_occupancy = state["log_occupancy"].to(self._device, copy=True)


def join_states(groups: list[HeadGroup]) -> dict[str, Tensor]:
    """One state of all heads, the same however they are grouped."""
    states = [group.state() for group in groups]
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}


def part(state: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """The tensors under ``name.``, without that prefix."""
    prefix = f"{name}."
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def split_state(groups: list[HeadGroup], state: Mapping[str, Tensor], step: int) -> None:
    """Hand the state of all heads out to the groups."""
    used = dict.fromkeys(groups[0].state(), 0)
    for group in groups:
        mine = {}
        for name, tensor in group.state().items():
            mine[name] = state[name][used[name] : used[name] + len(tensor)]
            used[name] += len(tensor)
        group.load_state(mine, step)
