"""The training loop: trains all heads on pairs of neighbors and makes one model of them."""

import math
from collections.abc import Callable, Mapping
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
from temi.training.constraints import Constraints
from temi.training.convergence import CHECK_EVERY, ConvergenceMonitor
from temi.training.distillation import distill
from temi.training.head_groups import (
    HeadGroup,
    StepInputs,
    concat_states,
    load_states,
    new_heads,
    sub_state,
)
from temi.training.head_partition import HeadPartition
from temi.training.head_threads import HeadThreadPool
from temi.training.heads import Heads
from temi.training.inputs import TrainingInputs, fit_inputs
from temi.training.memory import CONSENSUS_ROWS, distilled_rows
from temi.training.objectives import make_objective
from temi.training.objectives.teacher import agreement
from temi.training.process_group import ProcessGroup, SingleProcess
from temi.training.sampling import PairSampler
from temi.training.selection import JUDGED_IMAGES, choose_heads, edge_modularity
from temi.training.smoothing import GRAPH_NEIGHBORS, smoothed_pairs

__all__ = ["TrainConfig", "TrainReport", "Trainer"]

# Losses of fewer steps than this are too noisy to choose a head by.
_MIN_LOSS_WINDOW = 50
_ROWS_AT_A_TIME = 1024


Targets = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
"""Probabilities of all heads (H, n, C) to those of the model (n, C)."""


@dataclass(frozen=True, kw_only=True)
class TrainReport:
    step: int
    total_steps: int
    loss: float  # of the best head, averaged over the last epoch
    losses: tuple[float, ...]  # of every head, averaged over the last epoch
    best_head: int
    learning_rate: float  # of the next step
    changed: float | None  # share of assignments that changed between the last two checks
    settled: bool  # the assignments no longer change
    done: bool


class Trainer:
    """Trains all heads together; the caller chooses how many steps to run at a time.

    With a ``process_group`` of several processes, each process trains a part of the heads. All
    members except ``step``, ``settled`` and ``done`` are collective: every process calls them.
    """

    def __init__(
        self,
        features: npt.NDArray[np.floating],
        neighbors: npt.NDArray[np.integer],
        config: TrainConfig,
        *,
        constraints: Constraints | None = None,
        device: str = "auto",
        process_group: ProcessGroup | None = None,
    ) -> None:
        _check_arrays(features, neighbors)
        self.config = config = config.resolve(features.shape[0])
        if constraints is not None:
            constraints.check(len(features), config)
        self._constraints = constraints
        assert config.batch_size is not None
        assert config.steps is not None
        self.total_steps = config.steps
        self.images_per_step = config.batch_size
        self._device = resolve_device(device)
        self._group = group = process_group or SingleProcess()
        self._partition = HeadPartition.of(
            config, self._device, rank=group.rank, world_size=group.world_size
        )
        self._raw = features
        self._neighbors = neighbors
        self._inputs = self._prepare_inputs()
        pairs = neighbors[:, : config.n_neighbors]
        if config.smoothing:
            pairs = self._smoothed_pairs(neighbors)
        self._objective = make_objective(config)

        generator = torch.Generator().manual_seed(config.seed)
        self._head_groups = self._new_head_groups(generator)
        self._pool = HeadThreadPool(len(self._head_groups), self._device)
        self._pairs = pairs
        self._sampler = PairSampler(pairs, config.batch_size, generator, self._device)
        self._convergence = ConvergenceMonitor(self._inputs, config.n_heads)
        window = max(_MIN_LOSS_WINDOW, -(-features.shape[0] // config.batch_size))
        n_local = self._partition.heads_per_rank[group.rank]
        self._losses = torch.zeros(window, n_local, device=self._device)  # a ring buffer
        self._step = 0
        self.agreement: float | None = None  # of the heads with their consensus, after `finish`

    @property
    def step(self) -> int:
        return self._step

    @property
    def settled(self) -> bool:
        """Whether the assignments no longer change: at the last two checks, or at the last one of
        a complete run, at whose end the learning rate is zero."""
        complete = self._step >= self.total_steps and self._convergence.stable_checks > 0
        return self._convergence.settled or complete

    @property
    def done(self) -> bool:
        stopped = self.config.early_stop and self.settled
        return stopped or self._step >= self.total_steps

    def run(self, n_steps: int) -> TrainReport:
        """Train at most ``n_steps`` further steps and return a report."""
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
            changed=self._convergence.changed,
            settled=self.settled,
            done=self.done,
        )

    def finish(self) -> ClusterModel:
        """Return the consensus of all teacher heads, or the one with the lowest loss over the last
        epoch, as a model on raw features. With constraints, it is the consensus as they change
        it."""
        if self._constraints is not None:
            return self._learn(self._constraints)
        best = int(self._mean_losses().argmin())
        if self.config.select == "lowest_loss":
            return self.model(best)
        from temi.training.consensus import find_consensus  # loads scikit-learn, a second

        kept = choose_heads(self._modularity())
        sample = self._probabilities(self._spread(CONSENSUS_ROWS))[kept]
        consensus = find_consensus(sample, self.config.seed)
        self.agreement = consensus.agreement
        return self._distill(lambda heads: consensus.probabilities(heads[kept]))

    def model(self, head: int) -> ClusterModel:
        """Return one teacher head as a model on raw features."""
        owner, group, index = self._partition.locate(head)
        arrays: dict[str, npt.NDArray[np.float32]] = {}
        if owner == self._group.rank:
            teacher = self._head_groups[group].teacher
            arrays = self._to_model(teacher, index).tensors()
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        received = self._group.broadcast(tensors, src=owner)
        return ClusterModel.from_tensors(
            {name: tensor.numpy() for name, tensor in received.items()}, self.config.temperature
        )

    def head_probabilities(
        self, head: int, ids: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.float32]:
        """Return the probabilities that a teacher head gives to these training images: (n, C)."""
        found = self._probabilities(torch.from_numpy(np.asarray(ids, dtype=np.int64)))
        return np.asarray(found[head])

    def state(self) -> dict[str, Tensor]:
        """Return a checkpoint; training resumed from it by ``load_state`` is bit-identical.

        The checkpoint does not depend on the number of processes. Process 0 returns it, the
        others return {}.
        """
        state = self._group.gather(self._local_head_state(), self._partition.heads_per_rank)
        if not state:
            return {}
        state["losses"] = state["losses"].T.contiguous()
        state |= self._common_state()
        # Clones: the trainer keeps changing its tensors while the caller stores these.
        return {name: tensor.detach().cpu().clone() for name, tensor in state.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore a checkpoint of a trainer with the same features, neighbors and settings.

        With several processes, the state passed to process 0 is used.
        """
        state = self._group.broadcast(state)
        self._check_state(state)
        self._step = int(state["step"])
        local_rows = self._partition.local_rows
        self._losses = local_rows(state["losses"].T).T.to(self._device, copy=True)
        # The stored standardization, not a new one: another BLAS may round it differently.
        self._inputs = TrainingInputs.from_tensors(self._raw, state, self._device)
        self._convergence = ConvergenceMonitor(self._inputs, self.config.n_heads)
        heads = {name: local_rows(full) for name, full in sub_state(state, "heads").items()}
        load_states(self._head_groups, heads, self._step)
        self._sampler.load_state(sub_state(state, "sampler"))
        self._convergence.load_state(sub_state(state, "convergence"))

    def _train_step(self) -> None:
        assert self.config.teacher_momentum is not None
        groups, partition = self._head_groups, self._partition
        views = self._inputs.rows(self._sampler.sample())  # (2B, P)
        log_teachers = self._pool.map(lambda g: g.forward_teacher(views), groups)  # (h, 2B, C) each
        own_weights = torch.cat([agreement(t) for t in log_teachers])  # (h, B): this process
        own_weights = self._group.all_gather(own_weights, partition.heads_per_rank)  # (H, B)
        weights = self._objective.pair_weights(own_weights)[partition.local_heads]  # (h, B)
        group_weights = torch.split(weights, [len(t) for t in log_teachers])
        step = StepInputs(
            views=views,
            objective=self._objective,
            learning_rate=self._learning_rate(),
            teacher_momentum=self.config.teacher_momentum,
        )
        train = partial(HeadGroup.train_student, step=step)
        losses = self._pool.map(train, groups, log_teachers, group_weights)
        self._losses[self._step % len(self._losses)] = torch.cat(losses)
        self._step += 1
        if self._step % CHECK_EVERY == 0:
            self._check_convergence()

    def _check_convergence(self) -> None:
        local = self._pool.map(self._convergence.assign, [g.teacher for g in self._head_groups])
        heads_per_rank = self._partition.heads_per_rank
        assignments = self._group.all_gather_on_cpu(torch.cat(local), heads_per_rank)  # (H, S)
        self._convergence.update(assignments, self._mean_losses())

    def _learning_rate(self) -> float:
        config = self.config
        assert config.batch_size is not None
        assert config.warmup_steps is not None
        peak = config.learning_rate * config.batch_size / 256
        left = (self.total_steps - self._step) / max(1.0, config.cooldown * self.total_steps)
        warmup = (self._step + 1) / max(1, config.warmup_steps)
        return peak * min(1.0, warmup, 0.5 - 0.5 * math.cos(math.pi * min(1.0, left)))

    def _mean_losses(self) -> Tensor:
        seen = min(self._step, len(self._losses))
        local = self._losses[: max(seen, 1)].T  # (h, steps)
        losses = self._group.all_gather_on_cpu(local, self._partition.heads_per_rank)
        return losses.T.contiguous().mean(dim=0)  # (H,)

    def _prepare_inputs(self) -> TrainingInputs:
        # In process 0 only: it reads all rows, and another machine may round differently.
        fitted = fit_inputs(self._raw, self.config.projection_dim) if self._group.rank == 0 else {}
        return TrainingInputs.from_tensors(self._raw, self._group.broadcast(fitted), self._device)

    def _smoothed_pairs(self, neighbors: npt.NDArray[np.integer]) -> npt.NDArray[np.int64]:
        """Return the neighbors by smoothed rows, which process 0 computes."""
        assert self.config.n_neighbors is not None
        found: dict[str, Tensor] = {}
        if self._group.rank == 0:
            pairs = smoothed_pairs(self._raw, neighbors, self.config.n_neighbors)
            found = {"pairs": torch.from_numpy(pairs)}
        return self._group.broadcast(found)["pairs"].numpy()

    @torch.no_grad()
    def _probabilities(self, ids: Tensor) -> npt.NDArray[np.float32]:
        """Return the probabilities of all teacher heads for these rows: (H, n, C)."""
        blocks = []
        for block in torch.split(ids, _ROWS_AT_A_TIME):
            rows = self._inputs.rows(block)
            local = self._pool.map(lambda g: g.probabilities(rows), self._head_groups)  # noqa: B023
            found = torch.cat(local).cpu()  # (h, b, C)
            blocks.append(self._group.all_gather_on_cpu(found, self._partition.heads_per_rank))
        return torch.cat(blocks, dim=1).numpy()

    def _modularity(self) -> npt.NDArray[np.float64]:
        """Return how well the clusters of each head follow the graph of neighbors: (H,)."""
        images = self._spread(JUDGED_IMAGES).numpy()
        near = np.asarray(self._neighbors[images, :GRAPH_NEIGHBORS], dtype=np.int64)  # (n, k)
        ids, places = np.unique(np.concatenate([images, near.ravel()]), return_inverse=True)
        blocks = torch.split(torch.from_numpy(np.maximum(ids, 0)), _ROWS_AT_A_TIME)
        found = [self._probabilities(block).argmax(axis=2) for block in blocks]
        clusters = np.concatenate(found, axis=1)[:, places]  # (H, n + n * k)
        first, second = clusters[:, : len(images)], clusters[:, len(images) :]
        return edge_modularity(first, second.reshape(-1, *near.shape), near >= 0)

    def _spread(self, count: int) -> Tensor:
        """Return at most ``count`` ids, evenly over the set."""
        count = min(count, len(self._raw))
        return torch.linspace(0, len(self._raw) - 1, count, dtype=torch.float64).long()

    def _distill(self, targets_of: Targets) -> ClusterModel:
        """Train a head on plain features whose probabilities are a function of all heads'."""
        ids = self._spread(distilled_rows(self.config.n_clusters, len(self._raw)))
        blocks = [targets_of(self._probabilities(block)) for block in torch.split(ids, 4096)]
        return self._fit_head(ids, lambda: np.concatenate(blocks))

    def _learn(self, constraints: Constraints) -> ClusterModel:
        """Spread the labels over the neighbors; where none is near, the heads decide."""
        from temi.training.learning import find_clusters  # loads scikit-learn, a second
        from temi.training.propagation import propagate

        n_images, n_clusters = len(self._raw), self.config.n_clusters
        sample = self._spread(CONSENSUS_ROWS)
        found = find_clusters(self._probabilities, sample, n_images, constraints, self.config.seed)
        self.agreement = found.agreement
        ids = self._spread(distilled_rows(n_clusters, n_images))
        ids = torch.from_numpy(constraints.with_labels(ids.numpy()))
        return self._fit_head(
            ids, lambda: propagate(self._pairs, constraints, found, n_clusters, ids.numpy())
        )

    def _fit_head(
        self, ids: Tensor, make_targets: Callable[[], npt.NDArray[np.float32]]
    ) -> ClusterModel:
        """Process 0 trains a head on plain features of these images with these probabilities."""
        tensors: dict[str, Tensor] = {}
        if self._group.rank == 0:
            targets = torch.from_numpy(make_targets())
            head = distill(self._inputs.rows(ids), targets.to(self._device), self.config)
            arrays = self._to_model(head, 0).tensors()
            tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        received = self._group.broadcast(tensors)
        return ClusterModel.from_tensors(
            {name: tensor.numpy() for name, tensor in received.items()}, self.config.temperature
        )

    def _to_model(self, heads: Heads, head: int) -> ClusterModel:
        plain = self._inputs
        return heads.to_model(head, plain.standardizer, plain.directions, self.config.temperature)

    def _new_head_groups(self, generator: torch.Generator) -> list[HeadGroup]:
        config, dim, groups = self.config, self._inputs.dim, []
        for process, sizes in enumerate(self._partition.group_sizes):
            for n_heads in sizes:
                if process == self._group.rank:
                    group = HeadGroup(
                        config, n_heads=n_heads, dim=dim, generator=generator, device=self._device
                    )
                    groups.append(group)
                else:  # to advance the generator: a seed gives the same heads for any partition
                    new_heads(config, n_heads, dim, generator)
        return groups

    def _local_head_state(self) -> dict[str, Tensor]:
        """Return the tensors of this process's heads; the first axis is the heads."""
        state = concat_states(self._head_groups)
        heads = {f"heads.{name}": tensor for name, tensor in state.items()}
        return heads | {"losses": self._losses.T}

    def _common_state(self) -> dict[str, Tensor]:
        """Return the tensors that are the same in all processes."""
        state = self._inputs.tensors()
        state |= {f"sampler.{name}": tensor for name, tensor in self._sampler.state().items()}
        convergence = self._convergence.state()
        state |= {f"convergence.{name}": tensor for name, tensor in convergence.items()}
        return state | {"step": torch.tensor(self._step)}

    def _check_state(self, state: Mapping[str, Tensor]) -> None:
        expected = {name: tuple(tensor.shape) for name, tensor in self._common_state().items()}
        for name, tensor in self._local_head_state().items():
            expected[name] = self._partition.full_shape(tensor)
        expected["losses"] = expected["losses"][::-1]
        if expected.keys() != state.keys():
            names = ", ".join(sorted(expected.keys() ^ state.keys()))
            raise TemiError(f"the state belongs to another trainer: it differs in {names}")
        for name, shape in expected.items():
            found = tuple(state[name].shape)
            if found != shape:
                raise TemiError(
                    f"the state belongs to another trainer: {name} has shape {found}, not {shape}"
                )


def _check_arrays(features: npt.NDArray[np.floating], neighbors: npt.NDArray[np.integer]) -> None:
    if features.ndim != 2:
        raise TemiError(f"features must have shape (N, D), not {features.shape}")
    if neighbors.ndim != 2 or neighbors.shape[0] != features.shape[0] or neighbors.shape[1] < 1:
        raise TemiError(
            f"neighbors must have shape ({features.shape[0]}, k), not {neighbors.shape}"
        )
