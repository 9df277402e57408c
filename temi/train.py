"""The training loop: pairs of neighbors in, the best teacher head out."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.config import TrainConfig
from temi.device import resolve_device
from temi.errors import TemiError
from temi.groups import HeadGroup, Step, heads_per_group, join_states, part, split_state
from temi.inputs import TrainingInputs, find_directions
from temi.lanes import Lanes
from temi.model import ClusterModel
from temi.objectives import make_objective
from temi.objectives.teacher import agreement
from temi.sampling import PairSampler
from temi.settling import LOOK_EVERY, SettlingMonitor
from temi.standardize import Standardizer, fit_standardizer

__all__ = ["TrainConfig", "TrainReport", "Trainer"]

# Losses of fewer steps than this are too noisy to choose a head by.
_MIN_LOSS_WINDOW = 50


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    step: int
    total_steps: int
    loss: float  # of the best head, averaged over the last epoch
    losses: tuple[float, ...]  # of every head, averaged like it
    best_head: int
    learning_rate: float  # of the next step
    changed: float | None  # share of assignments that moved between the last two looks
    settled: bool  # assignments have stopped moving
    done: bool


class Trainer:
    """Trains all heads together; the caller decides how many steps to run at a time."""

    def __init__(
        self,
        features: npt.NDArray[np.floating],
        neighbors: npt.NDArray[np.integer],
        config: TrainConfig,
        *,
        device: str = "auto",
    ) -> None:
        _check_arrays(features, neighbors)
        self.config = config = config.resolve(features.shape[0])
        assert config.batch_size is not None
        assert config.steps is not None
        self.total_steps = config.steps
        self.images_per_step = config.batch_size
        self._device = resolve_device(device)
        self._raw = features
        self._inputs = self._prepare_inputs()
        self._objective = make_objective(config)

        generator = torch.Generator().manual_seed(config.seed)
        self._groups = self._new_groups(generator)
        self._lanes = Lanes(len(self._groups), self._device)
        self._sampler = PairSampler(
            neighbors[:, : config.n_neighbors], config.batch_size, generator, self._device
        )
        self._settling = SettlingMonitor(self._inputs, config.n_heads)
        window = max(_MIN_LOSS_WINDOW, -(-features.shape[0] // config.batch_size))
        self._losses = torch.zeros(window, config.n_heads, device=self._device)  # a ring
        self._step = 0

    @property
    def step(self) -> int:
        return self._step

    @property
    def settled(self) -> bool:
        return self._settling.settled

    @property
    def done(self) -> bool:
        stopped = self.config.early_stop and self.settled
        return stopped or self._step >= self.total_steps

    def run(self, n_steps: int) -> TrainReport:
        """Train at most ``n_steps`` further steps and say where things stand."""
        for _ in range(n_steps):
            if self.done:
                break
            self._train_step()
        return self.report()

    def report(self) -> TrainReport:
        mean_losses = self._mean_losses()
        best = int(mean_losses.argmin())
        return TrainReport(
            step=self._step,
            total_steps=self.total_steps,
            loss=float(mean_losses[best]),
            losses=tuple(mean_losses.tolist()),
            best_head=best,
            learning_rate=self._learning_rate(),
            changed=self._settling.changed,
            settled=self.settled,
            done=self.done,
        )

    def finish(self) -> ClusterModel:
        """The teacher head with the lowest loss over the last epoch."""
        return self.model(int(self._mean_losses().argmin()))

    def model(self, head: int) -> ClusterModel:
        """Any of the teacher heads, as a model on raw features."""
        group, place = divmod(head, self._groups[0].teacher.n_heads)
        return ClusterModel.of_head(
            self._groups[group].teacher,
            place,
            self._inputs.standardizer,
            self._inputs.directions,
            self.config.temperature,
        )

    def state(self) -> dict[str, Tensor]:
        """Everything that ``load_state`` needs to go on as if nothing had happened."""
        state = {
            "step": torch.tensor(self._step),
            "losses": self._losses,
            "mean": torch.from_numpy(self._inputs.standardizer.mean),
            "std": torch.from_numpy(self._inputs.standardizer.std),
        }
        if self._inputs.directions is not None:
            state["directions"] = self._inputs.directions
        parts: dict[str, Mapping[str, Tensor]] = {
            "heads": join_states(self._groups),
            "sampler": self._sampler.state(),
            "settling": self._settling.state(),
        }
        for name, tensors in parts.items():
            state |= {f"{name}.{key}": tensor for key, tensor in tensors.items()}
        # Clones: the trainer goes on changing its tensors while the caller stores these.
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take over the state of a trainer with the same features, neighbors and settings."""
        _check_state(self.state(), state)
        self._step = int(state["step"])
        self._losses = state["losses"].to(self._device, copy=True)
        # The stored preparation, not a fresh one: another BLAS may round it differently.
        standardizer = Standardizer(
            mean=state["mean"].numpy().copy(), std=state["std"].numpy().copy()
        )
        directions = state["directions"].clone() if "directions" in state else None
        self._inputs = TrainingInputs(self._raw, standardizer, directions, self._device)
        self._settling = SettlingMonitor(self._inputs, self.config.n_heads)
        split_state(self._groups, part(state, "heads"), self._step)
        self._sampler.load_state(part(state, "sampler"))
        self._settling.load_state(part(state, "settling"))

    def _train_step(self) -> None:
        assert self.config.teacher_momentum is not None
        views = self._inputs.rows(self._sampler.draw())  # (2B, P)
        taught = self._lanes.map(lambda group: group.teach(views), self._groups)  # (h, 2B, C) each
        weights = self._objective.weigh(torch.cat([agreement(t) for t in taught]))  # (H, B)
        shares = torch.split(weights, [len(t) for t in taught])
        step = Step(
            views=views,
            objective=self._objective,
            learning_rate=self._learning_rate(),
            teacher_momentum=self.config.teacher_momentum,
        )
        losses = self._lanes.map(partial(HeadGroup.learn, step=step), self._groups, taught, shares)
        self._losses[self._step % len(self._losses)] = torch.cat(losses)
        self._step += 1
        if self._step % LOOK_EVERY == 0:
            looks = self._lanes.map(self._settling.assign, [g.teacher for g in self._groups])
            self._settling.compare(torch.cat(looks), self._mean_losses())

    def _learning_rate(self) -> float:
        config = self.config
        assert config.batch_size is not None
        assert config.warmup_steps is not None
        peak = config.learning_rate * config.batch_size / 256
        left = (self.total_steps - self._step) / max(1.0, config.cooldown * self.total_steps)
        warmth = (self._step + 1) / max(1, config.warmup_steps)
        return peak * min(1.0, warmth, 0.5 - 0.5 * math.cos(math.pi * min(1.0, left)))

    def _mean_losses(self) -> Tensor:
        seen = min(self._step, len(self._losses))
        return self._losses[: max(seen, 1)].mean(dim=0)  # (H,)

    def _prepare_inputs(self) -> TrainingInputs:
        standardizer = fit_standardizer(self._raw)
        if not np.isfinite(standardizer.mean).all():
            raise TemiError("features contain NaN or infinity")
        directions = find_directions(self._raw, standardizer, self.config.projection_dim)
        return TrainingInputs(self._raw, standardizer, directions, self._device)

    def _new_groups(self, generator: torch.Generator) -> list[HeadGroup]:
        config, size = self.config, heads_per_group(self.config, self._device)
        counts = [min(size, config.n_heads - done) for done in range(0, config.n_heads, size)]
        return [
            HeadGroup(
                config,
                n_heads=count,
                dim=self._inputs.dim,
                generator=generator,
                device=self._device,
            )
            for count in counts
        ]


def _check_state(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    if own.keys() != given.keys():
        strangers = ", ".join(sorted(own.keys() ^ given.keys()))
        raise TemiError(f"this state is of another trainer: {strangers}")
    for name, tensor in own.items():
        if tensor.shape != given[name].shape:
            raise TemiError(
                f"this state is of another trainer: {name} has shape "
                f"{tuple(given[name].shape)}, not {tuple(tensor.shape)}"
            )


def _check_arrays(features: npt.NDArray[np.floating], neighbors: npt.NDArray[np.integer]) -> None:
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    if neighbors.ndim != 2 or neighbors.shape[0] != features.shape[0] or neighbors.shape[1] < 1:
        raise TemiError(
            f"neighbors must have shape ({features.shape[0]}, k), not {neighbors.shape}"
        )
