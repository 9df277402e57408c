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
from temi.model import ClusterModel
from temi.training.convergence import LOOK_EVERY, ConvergenceMonitor
from temi.training.head_groups import HeadGroup, Step, join_states, new_heads, part, split_state
from temi.training.head_partition import HeadPartition
from temi.training.head_threads import HeadThreadPool
from temi.training.inputs import TrainingInputs, prepare
from temi.training.objectives import make_objective
from temi.training.objectives.teacher import agreement
from temi.training.process_group import ProcessGroup, SingleProcess
from temi.training.sampling import PairSampler

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
    """Trains all heads together; the caller decides how many steps to run at a time.

    With a ``team`` of several processes each trains a share of the heads, and all of them make
    every call but ``step``, ``settled`` and ``done`` together.
    """

    def __init__(
        self,
        features: npt.NDArray[np.floating],
        neighbors: npt.NDArray[np.integer],
        config: TrainConfig,
        *,
        device: str = "auto",
        team: ProcessGroup | None = None,
    ) -> None:
        _check_arrays(features, neighbors)
        self.config = config = config.resolve(features.shape[0])
        assert config.batch_size is not None
        assert config.steps is not None
        self.total_steps = config.steps
        self.images_per_step = config.batch_size
        self._device = resolve_device(device)
        self._team = team = team or SingleProcess()
        self._share = HeadPartition.of(config, self._device, rank=team.rank, processes=team.size)
        self._raw = features
        self._inputs = self._prepare_inputs()
        self._objective = make_objective(config)

        generator = torch.Generator().manual_seed(config.seed)
        self._groups = self._new_groups(generator)
        self._lanes = HeadThreadPool(len(self._groups), self._device)
        self._sampler = PairSampler(
            neighbors[:, : config.n_neighbors], config.batch_size, generator, self._device
        )
        self._settling = ConvergenceMonitor(self._inputs, config.n_heads)
        window = max(_MIN_LOSS_WINDOW, -(-features.shape[0] // config.batch_size))
        n_mine = self._share.heads[team.rank]
        self._losses = torch.zeros(window, n_mine, device=self._device)  # a ring
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
        owner, group, place = self._share.find(head)
        arrays: dict[str, npt.NDArray[np.float32]] = {}
        if owner == self._team.rank:
            arrays = ClusterModel.of_head(
                self._groups[group].teacher,
                place,
                self._inputs.standardizer,
                self._inputs.directions,
                self.config.temperature,
            ).tensors()
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        shared = self._team.share(tensors, source=owner)
        return ClusterModel.from_tensors(
            {name: tensor.numpy() for name, tensor in shared.items()}, self.config.temperature
        )

    def state(self) -> dict[str, Tensor]:
        """Everything that ``load_state`` needs to go on as if nothing had happened.

        It is the same for any number of processes; the first has it, the others get nothing.
        """
        state = self._team.collect(self._states_of_heads(), self._share.heads)
        if not state:
            return {}
        state["losses"] = state["losses"].T.contiguous()
        state |= self._common_state()
        # Clones: the trainer goes on changing its tensors while the caller stores these.
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take over the state of a trainer with the same features, neighbors and settings.

        Of several processes, only what the first is given counts.
        """
        state = self._team.share(state)
        self._check_state(state)
        self._step = int(state["step"])
        self._losses = self._share.rows(state["losses"].T).T.to(self._device, copy=True)
        # The stored preparation, not a fresh one: another BLAS may round it differently.
        self._inputs = TrainingInputs.from_tensors(self._raw, state, self._device)
        self._settling = ConvergenceMonitor(self._inputs, self.config.n_heads)
        heads = {name: self._share.rows(whole) for name, whole in part(state, "heads").items()}
        split_state(self._groups, heads, self._step)
        self._sampler.load_state(part(state, "sampler"))
        self._settling.load_state(part(state, "settling"))

    def _train_step(self) -> None:
        assert self.config.teacher_momentum is not None
        views = self._inputs.rows(self._sampler.draw())  # (2B, P)
        taught = self._lanes.map(lambda group: group.teach(views), self._groups)  # (h, 2B, C) each
        agreed = torch.cat([agreement(t) for t in taught])  # (h, B): heads of this process
        agreed = self._team.join(agreed, self._share.heads)  # (H, B)
        weights = self._objective.weigh(agreed)[self._share.mine]  # (h, B)
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
            looked = self._team.join_on_cpu(torch.cat(looks), self._share.heads)  # (H, S)
            self._settling.compare(looked, self._mean_losses())

    def _learning_rate(self) -> float:
        config = self.config
        assert config.batch_size is not None
        assert config.warmup_steps is not None
        peak = config.learning_rate * config.batch_size / 256
        left = (self.total_steps - self._step) / max(1.0, config.cooldown * self.total_steps)
        preloader = (self._step + 1) / max(1, config.warmup_steps)
        return peak * min(1.0, preloader, 0.5 - 0.5 * math.cos(math.pi * min(1.0, left)))

    def _mean_losses(self) -> Tensor:
        seen = min(self._step, len(self._losses))
        mine = self._losses[: max(seen, 1)].T
        losses = self._team.join_on_cpu(mine, self._share.heads).T.contiguous()  # (steps, H)
        return losses.mean(dim=0)  # (H,)

    def _prepare_inputs(self) -> TrainingInputs:
        first = (
            self._team.rank == 0
        )  # only there: it reads all rows, and others may round otherwise
        prepared = prepare(self._raw, self.config.projection_dim) if first else {}
        return TrainingInputs.from_tensors(self._raw, self._team.share(prepared), self._device)

    def _new_groups(self, generator: torch.Generator) -> list[HeadGroup]:
        config, dim, groups = self.config, self._inputs.dim, []
        for process, sizes in enumerate(self._share.groups):
            for n_heads in sizes:
                if process == self._team.rank:
                    group = HeadGroup(
                        config, n_heads=n_heads, dim=dim, generator=generator, device=self._device
                    )
                    groups.append(group)
                else:  # only drawn: a seed means the same heads however they are shared out
                    new_heads(config, n_heads, dim, generator)
        return groups

    def _states_of_heads(self) -> dict[str, Tensor]:
        """Of this process; they begin with the axis of heads."""
        heads = {f"heads.{name}": tensor for name, tensor in join_states(self._groups).items()}
        return heads | {"losses": self._losses.T}

    def _common_state(self) -> dict[str, Tensor]:
        """The same in all processes."""
        state = self._inputs.tensors()
        state |= {f"sampler.{name}": tensor for name, tensor in self._sampler.state().items()}
        state |= {f"settling.{name}": tensor for name, tensor in self._settling.state().items()}
        return state | {"step": torch.tensor(self._step)}

    def _check_state(self, given: Mapping[str, Tensor]) -> None:
        own = {name: tuple(tensor.shape) for name, tensor in self._common_state().items()}
        for name, tensor in self._states_of_heads().items():
            own[name] = self._share.whole_shape(tensor)
        own["losses"] = own["losses"][::-1]
        if own.keys() != given.keys():
            strangers = ", ".join(sorted(own.keys() ^ given.keys()))
            raise TemiError(f"this state is of another trainer: {strangers}")
        for name, shape in own.items():
            found = tuple(given[name].shape)
            if found != shape:
                raise TemiError(
                    f"this state is of another trainer: {name} has shape {found}, not {shape}"
                )


def _check_arrays(features: npt.NDArray[np.floating], neighbors: npt.NDArray[np.integer]) -> None:
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    if neighbors.ndim != 2 or neighbors.shape[0] != features.shape[0] or neighbors.shape[1] < 1:
        raise TemiError(
            f"neighbors must have shape ({features.shape[0]}, k), not {neighbors.shape}"
        )
