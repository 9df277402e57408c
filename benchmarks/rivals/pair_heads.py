"""Trains heads on pairs of an image and its neighbor, for the rivals that differ in the loss."""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from benchmarks.rivals.base import Features, Fitted, check
from benchmarks.rivals.spaces import PROJECTION_DIM
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.heads import Heads
from temi.training.inputs import TrainingInputs, fit_inputs
from temi.training.sampling import PairSampler

# (heads, rows of B images and then of their B neighbors) -> the loss of each head (H,)
PairLoss = Callable[[Heads, Tensor], Tensor]

TEMPERATURE = 0.1  # of the heads' cosines, as in TEMI
N_HEADS = 5
MAX_NEIGHBORS = 100  # of an image; those by plain features are less pure farther away
STEPS = 400
LEARNING_RATE = 4e-3
LOSS_WINDOW = 50  # the last steps, over which the loss of a head is averaged
CPU = torch.device("cpu")


def log_probs(heads: Heads, rows: Tensor) -> Tensor:
    """Return the log-probabilities of the clusters: (H, rows, C)."""
    logits: Tensor = heads(rows)
    return (logits / TEMPERATURE).log_softmax(dim=-1)


class PairTrainer:
    """Trains ``N_HEADS`` heads of TEMI's shape with Adam; keeps the head with the lowest loss."""

    def __init__(
        self, features: Features, n_clusters: int, loss: PairLoss, *, steps: int, seed: int
    ) -> None:
        check(features, n_clusters)
        config = TrainConfig(n_clusters=n_clusters, seed=seed).resolve(len(features))
        assert config.n_neighbors is not None
        assert config.batch_size is not None
        self.n_neighbors = min(config.n_neighbors, MAX_NEIGHBORS)
        self._batch_size = config.batch_size
        self._features = features
        self._loss = loss
        self._steps = steps
        self._generator = torch.Generator().manual_seed(seed)
        tensors = fit_inputs(features, PROJECTION_DIM)
        self._inputs = TrainingInputs.from_tensors(features, tensors, CPU)
        self.heads = Heads(
            n_heads=N_HEADS,
            dim=self._inputs.dim,
            hidden_dim=128,
            bottleneck_dim=64,
            n_clusters=n_clusters,
            generator=self._generator,
        )
        self._optimizer = torch.optim.Adam(self.heads.parameters(), lr=LEARNING_RATE)
        self._losses: list[Tensor] = []
        self.use_neighbors(mine_neighbors(features, self.n_neighbors, seed=seed).ids)

    def use_neighbors(self, neighbors: npt.NDArray[np.integer]) -> None:
        """Draw further pairs from these neighbors (N, k)."""
        self._sampler = PairSampler(neighbors, self._batch_size, self._generator, CPU)

    def all_rows(self) -> Tensor:
        """Return the inputs of the heads for all images: (N, P)."""
        return self._inputs.rows(torch.arange(len(self._features)))

    def run(self, until: float = 1.0) -> None:
        """Train up to this share of all steps."""
        while len(self._losses) < until * self._steps:
            self._optimizer.param_groups[0]["lr"] = self._learning_rate()
            losses = self._loss(self.heads, self._inputs.rows(self._sampler.sample()))  # (H,)
            self._optimizer.zero_grad()
            torch.autograd.backward(losses.sum())
            self._optimizer.step()
            self._losses.append(losses.detach())

    def finish(self) -> Fitted:
        best = int(torch.stack(self._losses[-LOSS_WINDOW:]).mean(dim=0).argmin())
        self.heads.requires_grad_(False)
        inputs = self._inputs
        model = self.heads.to_model(best, inputs.standardizer, inputs.directions, TEMPERATURE)
        return Fitted(labels=model.predict(self._features), predict=model.predict)

    def _learning_rate(self) -> float:
        """Rise over the first tenth of the run, then fall to zero along a cosine."""
        done = len(self._losses) / self._steps
        return LEARNING_RATE * min(1.0, 10 * done + 0.01) * 0.5 * (1 + math.cos(math.pi * done))
