"""The loss of the self-supervised classification network on pairs of neighbors."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.rivals.base import Features, Fitted, one_core
from benchmarks.rivals.pair_heads import STEPS, PairTrainer
from temi.training.heads import Heads

ROW_TEMPERATURE = 0.1  # over the clusters of an image
COLUMN_TEMPERATURE = 0.05  # over the images of a cluster


@dataclass(frozen=True, kw_only=True)
class Sscn:
    """Self-Supervised Classification Network (Amrani, Karlinsky and Bronstein, ECCV 2022).

    Cross-entropy between the clusters of two views in which a uniform prior over the clusters is
    built in: the probability of a cluster is divided by its use in the batch, and the target is
    normalized over the images before it is normalized over the clusters, so that one cluster for
    all is not optimal. The two views are an image and one of its neighbors instead of two
    augmentations, the network is frozen, and five heads with the same number of clusters replace
    heads with different numbers; the head with the lowest loss is kept.
    """

    name = "SSCN"
    steps: int = STEPS

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        trainer = PairTrainer(features, n_clusters, sscn_loss, steps=self.steps, seed=seed)
        trainer.run()
        return trainer.finish()


def sscn_loss(heads: Heads, rows: Tensor) -> Tensor:
    first, second = heads(rows).chunk(2, dim=1)  # (H, B, C) each
    return 0.5 * (uniform_cross_entropy(first, second) + uniform_cross_entropy(second, first))


def uniform_cross_entropy(logits: Tensor, target_logits: Tensor) -> Tensor:
    """Return the mean cross-entropy of each head (H,), from logits (H, B, C)."""
    _, n_rows, n_clusters = logits.shape
    log_target = (target_logits / COLUMN_TEMPERATURE).log_softmax(dim=1)  # p(x|c)
    target = log_target.softmax(dim=2)  # p(c|x) under a uniform p(c)
    log_rows = (logits / ROW_TEMPERATURE).log_softmax(dim=2)  # p(c|x)
    log_use = torch.logsumexp(log_rows, dim=1, keepdim=True)  # (H, 1, C)
    log_balanced = log_rows - log_use + math.log(n_rows / n_clusters)
    return -(target * log_balanced).sum(dim=2).mean(dim=1)
