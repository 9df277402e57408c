"""Self-labeling with equal partition."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from benchmarks.rivals.base import Features, Fitted, check, one_core
from benchmarks.rivals.spaces import UnitSpace
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.sampling import PairSampler

N_HEADS = 5
SHARPNESS = 25.0  # lambda: the assignment is almost hard
SINKHORN_STEPS = 50  # at most, while the head is trained
LAST_SINKHORN_STEPS = 500  # at most, for the labels that are returned
TOLERANCE = 0.05  # of the size of a cluster
STEPS_PER_ROUND = 15  # between two partitions
LEARNING_RATE = 0.02
WEIGHT_DECAY = 1e-4
SCALE = 10.0  # of the unit rows, as a temperature of 0.1


@dataclass(frozen=True, kw_only=True)
class Sela:
    """SeLa, self-labeling by equal partition (Asano, Rupprecht and Vedaldi, ICLR 2020).

    Alternates between two steps: assign all images to clusters of equal size so that the head's
    likelihood is highest (optimal transport by Sinkhorn's algorithm), and train the head on these
    labels. The head is linear, on frozen features. A neighbor of an image replaces its
    augmentation: it is trained to get the label of the image, without which a linear head
    hardly leaves its first labels. Of five heads, the one with the lowest loss is kept. The labels
    are those of the last equal partition; new rows get the head's most probable cluster.
    """

    name = "SeLa"
    steps: int = 480

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        space = UnitSpace.fit(features)
        rows = SCALE * space.rows(features)
        sampler = _sampler(features, n_clusters, seed)
        generator = torch.Generator().manual_seed(seed)
        shape = (N_HEADS, rows.shape[1], n_clusters)
        weight = (0.1 * torch.randn(shape, generator=generator)).requires_grad_()
        bias = torch.zeros(N_HEADS, 1, n_clusters, requires_grad=True)
        optimizer = torch.optim.AdamW([weight, bias], LEARNING_RATE, weight_decay=WEIGHT_DECAY)
        for _ in range(self.steps // STEPS_PER_ROUND):
            labels = equal_partition(_logits(rows, weight, bias), SINKHORN_STEPS)  # (H, N)
            for _ in range(STEPS_PER_ROUND):
                image, neighbor = sampler.sample().chunk(2)
                loss = _losses(_logits(rows[neighbor], weight, bias), labels[:, image]).sum()
                optimizer.zero_grad()
                torch.autograd.backward(loss)
                optimizer.step()
        logits = _logits(rows, weight, bias)
        labels = equal_partition(logits, LAST_SINKHORN_STEPS)
        best = int(_losses(logits, labels).argmin())
        return space.fitted(
            features, weight[best] * SCALE, bias[best, 0], labels[best].numpy().astype(np.int64)
        )


def _sampler(features: Features, n_clusters: int, seed: int) -> PairSampler:
    config = TrainConfig(n_clusters=n_clusters, seed=seed).resolve(len(features))
    assert config.n_neighbors is not None
    assert config.batch_size is not None
    neighbors = mine_neighbors(features, config.n_neighbors, seed=seed).ids
    generator = torch.Generator().manual_seed(seed)
    return PairSampler(neighbors, config.batch_size, generator, torch.device("cpu"))


def _logits(rows: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.matmul(rows, weight) + bias  # (H, rows, C)


def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of each head: (H,)."""
    return cross_entropy(logits.transpose(1, 2), labels, reduction="none").mean(dim=1)


@torch.no_grad()
def equal_partition(logits: Tensor, max_steps: int) -> Tensor:
    """Assign the rows of (H, N, C) to clusters of about equal size: (H, N)."""
    log_probs = logits.double().log_softmax(dim=-1)
    log_kernel = SHARPNESS * (log_probs - log_probs.amax(dim=-1, keepdim=True))
    kernel = log_kernel.clamp_min(-600.0).exp()  # positive in double precision
    _, n_rows, n_clusters = kernel.shape
    by_cluster = torch.ones_like(kernel[:, :1])  # (H, 1, C)
    for _ in range(max_steps):
        # Not as matrix products, which are slower for a single column.
        by_row = 1.0 / (n_rows * (kernel * by_cluster).sum(dim=2, keepdim=True))  # (H, N, 1)
        sizes = n_clusters * (kernel * by_row).sum(dim=1, keepdim=True)  # (H, 1, C)
        unequal = (sizes * by_cluster - 1.0).abs().max()
        by_cluster = 1.0 / sizes
        if unequal < TOLERANCE:
            break
    return (kernel * by_cluster).argmax(dim=-1)
