"""The training loop: pairs of neighbors in, the best teacher head out."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from temi.config import TrainConfig
from temi.device import resolve_device
from temi.errors import TemiError
from temi.heads import Heads, update_teacher
from temi.model import ClusterModel
from temi.objective import temi_loss, uniform_log_occupancy, update_log_occupancy
from temi.optimizer import HeadOptimizer
from temi.projection import prepare_features, principal_directions
from temi.sampling import PairSampler
from temi.settling import SettlingMonitor
from temi.standardize import Standardizer, fit_standardizer

__all__ = ["TrainConfig", "TrainReport", "Trainer"]

# Losses of fewer steps than this are too noisy to choose a head by.
_MIN_LOSS_WINDOW = 50


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    step: int
    total_steps: int
    loss: float  # of the best head, averaged over the last epoch
    best_head: int
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
        assert config.teacher_momentum is not None
        self.total_steps = config.steps
        self._teacher_momentum = config.teacher_momentum
        self.images_per_step = config.batch_size
        self._device = resolve_device(device)
        self._raw = features
        self._standardizer = fit_standardizer(features)
        if not np.isfinite(self._standardizer.mean).all():
            raise TemiError("features contain NaN or infinity")
        self._directions = self._find_directions()
        self._inputs = self._prepare_inputs()  # (N, P)

        generator = torch.Generator().manual_seed(config.seed)
        self._student = _new_heads(config, self._inputs.shape[1], generator).to(self._device)
        self._teacher = copy.deepcopy(self._student).requires_grad_(False)
        self._optimizer = HeadOptimizer(self._student, weight_decay=config.weight_decay)
        self._sampler = PairSampler(
            neighbors[:, : config.n_neighbors], config.batch_size, generator, self._device
        )
        self._settling = SettlingMonitor(self._inputs, config.n_heads)
        self._log_occupancy = uniform_log_occupancy(config.n_heads, config.n_clusters).to(
            self._device
        )
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
            self._step += 1
        return self.report()

    def report(self) -> TrainReport:
        mean_losses = self._mean_losses()
        best = int(mean_losses.argmin())
        return TrainReport(
            step=self._step,
            total_steps=self.total_steps,
            loss=float(mean_losses[best]),
            best_head=best,
            changed=self._settling.changed,
            settled=self.settled,
            done=self.done,
        )

    def finish(self) -> ClusterModel:
        """The teacher head with the lowest loss over the last epoch, as a model on raw features."""
        best = int(self._mean_losses().argmin())
        teacher = self._teacher
        rows = slice(best * teacher.hidden_dim, (best + 1) * teacher.hidden_dim)
        with torch.no_grad():
            w1 = teacher.w1[rows].T.cpu()  # (P, hidden)
            tensors = {
                "w1": w1 if self._directions is None else self._directions @ w1,  # (D, hidden)
                "b1": teacher.b1[rows],
                "w2": teacher.w2[best],
                "b2": teacher.b2[best, 0],
                "w3": teacher.prototypes()[best],
            }
        arrays = {name: tensor.cpu().numpy().copy() for name, tensor in tensors.items()}
        arrays |= {"mean": self._standardizer.mean, "std": self._standardizer.std}
        return ClusterModel(arrays, self.config.temperature)

    def state(self) -> dict[str, Tensor]:
        """Everything that ``load_state`` needs to go on as if nothing had happened."""
        state = {
            "step": torch.tensor(self._step),
            "losses": self._losses,
            "log_occupancy": self._log_occupancy,
            "mean": torch.from_numpy(self._standardizer.mean),
            "std": torch.from_numpy(self._standardizer.std),
        }
        if self._directions is not None:
            state["directions"] = self._directions
        parts: dict[str, Mapping[str, Tensor]] = {
            "student": dict(self._student.named_parameters()),
            "teacher": dict(self._teacher.named_parameters()),
            "optimizer": self._optimizer.state(),
            "sampler": self._sampler.state(),
            "settling": self._settling.state(),
        }
        for part, tensors in parts.items():
            state |= {f"{part}.{name}": tensor for name, tensor in tensors.items()}
        # Clones: the trainer goes on changing its tensors while the caller stores these.
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take over the state of a trainer with the same features, neighbors and settings."""
        _check_state(self.state(), state)
        self._step = int(state["step"])
        self._losses = state["losses"].to(self._device, copy=True)
        self._log_occupancy = state["log_occupancy"].to(self._device, copy=True)
        # The stored preparation, not a fresh one: another BLAS may round it differently.
        self._standardizer = Standardizer(
            mean=state["mean"].numpy().copy(), std=state["std"].numpy().copy()
        )
        self._directions = state["directions"].clone() if "directions" in state else None
        self._inputs = self._prepare_inputs()
        self._settling = SettlingMonitor(self._inputs, self.config.n_heads)
        self._student.load_state_dict(_part(state, "student"))
        self._teacher.load_state_dict(_part(state, "teacher"))
        self._optimizer.load_state(_part(state, "optimizer"))
        self._sampler.load_state(_part(state, "sampler"))
        self._settling.load_state(_part(state, "settling"))

    def _train_step(self) -> None:
        config = self.config
        views = self._inputs[torch.cat(self._sampler.draw())]  # (2B, P)
        log_student = (self._student(views) / config.temperature).log_softmax(dim=-1)
        with torch.no_grad():
            log_teacher = (self._teacher(views) / config.temperature).log_softmax(dim=-1)
        self._log_occupancy = update_log_occupancy(
            self._log_occupancy, log_teacher, config.occupancy_momentum
        )
        losses = temi_loss(log_student, log_teacher, self._log_occupancy, config.beta)  # (H,)
        self._optimizer.minimize(losses.mean(), self._learning_rate())
        update_teacher(self._teacher, self._student, self._teacher_momentum)
        self._losses[self._step % len(self._losses)] = losses.detach()
        self._settling.after_step(self._step + 1, self._teacher, self._mean_losses())

    def _learning_rate(self) -> float:
        config = self.config
        assert config.batch_size is not None
        assert config.warmup_steps is not None
        peak = config.learning_rate * config.batch_size / 256
        return peak * min(1.0, (self._step + 1) / max(1, config.warmup_steps))

    def _mean_losses(self) -> Tensor:
        seen = min(self._step, len(self._losses))
        return self._losses[: max(seen, 1)].mean(dim=0)  # (H,)

    def _find_directions(self) -> Tensor | None:
        wanted = self.config.projection_dim
        if wanted is None or wanted >= self._raw.shape[1]:
            return None
        return torch.from_numpy(principal_directions(self._raw, self._standardizer, wanted))

    def _prepare_inputs(self) -> Tensor:
        return prepare_features(self._raw, self._standardizer, self._directions, self._device)


def _new_heads(config: TrainConfig, dim: int, generator: torch.Generator) -> Heads:
    return Heads(
        n_heads=config.n_heads,
        dim=dim,
        hidden_dim=config.hidden_dim,
        bottleneck_dim=config.bottleneck_dim,
        n_clusters=config.n_clusters,
        generator=generator,
    )


def _part(state: Mapping[str, Tensor], part: str) -> dict[str, Tensor]:
    prefix = f"{part}."
    return {k.removeprefix(prefix): v for k, v in state.items() if k.startswith(prefix)}


def _check_state(own: Mapping[str, Tensor], given: Mapping[str, Tensor]) -> None:
    if own.keys() != given.keys():
        strangers = ", ".join(sorted(own.keys() ^ given.keys()))
        raise TemiError(f"this state is of another trainer: {strangers}")
    for name, tensor in own.items():
        # What is left of an epoch's shuffle has a length of its own.
        if name != "sampler.order" and tensor.shape != given[name].shape:
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
    if neighbors.min() < 0 or neighbors.max() >= features.shape[0]:
        raise TemiError("neighbors point outside the features")
