"""A group of heads with its student, teacher, optimizer and class occupancy.

Heads depend on each other only through the weight of a pair, so a step can process them group by
group. The activations of a group stay in the CPU caches, and a run with many heads and clusters
holds the student's logits and gradients of one group at a time.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from temi.config import TrainConfig
from temi.precision import autocast_to, matrix_dtype
from temi.training.heads import Heads, update_teacher
from temi.training.objectives import Objective
from temi.training.objectives.teacher import uniform_log_occupancy, update_log_occupancy
from temi.training.optimizer import RestorableAdamW

# The groups are distributed over the cores of a CPU, so there must be many of similar size; two
# heads per group are as fast as more. A GPU takes as many heads as fit into its memory beside the
# rest of the run, counted in elements of the widest activation.
_CPU_HEADS = 2
_GPU_ACTIVATIONS = 200_000_000


def heads_per_group(config: TrainConfig, device: torch.device) -> int:
    assert config.batch_size is not None
    if device.type == "cpu":
        return min(config.n_heads, _CPU_HEADS)
    widest = 2 * config.batch_size * max(config.head_dims[0], config.n_clusters)
    return min(config.n_heads, max(1, _GPU_ACTIVATIONS // widest))


def new_heads(config: TrainConfig, n_heads: int, dim: int, generator: torch.Generator) -> Heads:
    hidden, bottleneck = config.head_dims
    return Heads(
        n_heads=n_heads,
        dim=dim,
        hidden_dim=hidden,
        bottleneck_dim=bottleneck,
        n_clusters=config.n_clusters,
        generator=generator,
    )


@dataclass(frozen=True, kw_only=True)
class StepInputs:
    """The inputs of a training step that all groups share."""

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
    def forward_teacher(self, views: Tensor) -> Tensor:
        """Return the teacher's log-probabilities (h, 2B, C) and update the occupancy with them."""
        log_teacher = self._log_probs(self.teacher, views)
        self._log_occupancy = update_log_occupancy(
            self._log_occupancy, log_teacher, self._config.occupancy_momentum
        )
        return log_teacher

    def train_student(self, log_teacher: Tensor, weight: Tensor, *, step: StepInputs) -> Tensor:
        """Update the student by one optimizer step, then the teacher; returns the losses (h,)."""
        log_student = self._log_probs(self.student, step.views)  # (h, 2B, C)
        losses = step.objective.losses(log_student, log_teacher, self._log_occupancy, weight)
        # The total loss is the mean over all heads, not only over the heads of this group.
        torch.autograd.backward(losses.sum() / self._config.n_heads)
        self._optimizer.step(step.learning_rate, step.learning_rate)
        update_teacher(self.teacher, self.student, step.teacher_momentum)
        return losses.detach()

    @torch.no_grad()
    def probabilities(self, rows: Tensor) -> Tensor:
        """Return the teacher's probabilities: (h, n, C)."""
        return self._log_probs(self.teacher, rows).exp_()

    def _log_probs(self, heads: Heads, views: Tensor) -> Tensor:
        with autocast_to(self._dtype, self._device):
            logits: Tensor = heads(views)
        return logits.float().div_(self._config.temperature).log_softmax(dim=-1)

    def state(self) -> dict[str, Tensor]:
        """Return tensors whose first axis is the heads, so that groups can be concatenated."""
        parts: dict[str, Mapping[str, Tensor]] = {
            "student": dict(self.student.named_parameters()),
            "teacher": dict(self.teacher.named_parameters()),
            "optimizer": self._optimizer.state(),
        }
        named = {f"{part}.{name}": t for part, ts in parts.items() for name, t in ts.items()}
        return named | {"log_occupancy": self._log_occupancy}

    @torch.no_grad()
    def load_state(self, state: Mapping[str, Tensor], step: int) -> None:
        self.student.load_state_dict(sub_state(state, "student"))
        self.teacher.load_state_dict(sub_state(state, "teacher"))
        self._optimizer.load_state(sub_state(state, "optimizer"), step)
        self._log_occupancy = state["log_occupancy"].to(self._device, copy=True)


def concat_states(groups: list[HeadGroup]) -> dict[str, Tensor]:
    """Return one state of all heads, which does not depend on how they are grouped."""
    states = [group.state() for group in groups]
    return {name: torch.cat([state[name] for state in states]) for name in states[0]}


def sub_state(state: Mapping[str, Tensor], name: str) -> dict[str, Tensor]:
    """Return the tensors whose names start with ``name.``, without that prefix."""
    prefix = f"{name}."
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def load_states(groups: list[HeadGroup], state: Mapping[str, Tensor], step: int) -> None:
    """Split a state of ``concat_states`` and load each group's part of it."""
    offsets = dict.fromkeys(groups[0].state(), 0)
    for group in groups:
        own = {}
        for name, tensor in group.state().items():
            own[name] = state[name][offsets[name] : offsets[name] + len(tensor)]
            offsets[name] += len(tensor)
        group.load_state(own, step)
