"""IIC on pairs of neighbors."""

from dataclasses import dataclass

import torch
from torch import Tensor

from benchmarks.rivals.base import Features, Fitted, one_core
from benchmarks.rivals.pair_heads import STEPS, PairTrainer, log_probs
from temi.training.heads import Heads

# Weight of the entropy of the clusters. With the published 1.0, clusters stay empty in a run as
# short as ours.
ENTROPY_WEIGHT = 1.5
SMALLEST = 1e-9  # probability of a pair of clusters, below which the logarithm is cut


@dataclass(frozen=True, kw_only=True)
class Iic:
    """Invariant Information Clustering (Ji, Henriques and Vedaldi, ICCV 2019).

    Maximizes the mutual information of the clusters of two views of an image, from their joint
    distribution over a batch. The views are an image and one of its neighbors, because frozen
    features cannot be augmented. As published, the joint distribution is made symmetric and the
    best of five heads is kept; the auxiliary heads for overclustering, which serve to train the
    features, are left out.
    """

    name = "IIC"
    steps: int = STEPS

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        trainer = PairTrainer(features, n_clusters, iic_loss, steps=self.steps, seed=seed)
        trainer.run()
        return trainer.finish()


def iic_loss(heads: Heads, rows: Tensor) -> Tensor:
    return negative_information(log_probs(heads, rows).exp())


def negative_information(probs: Tensor) -> Tensor:
    """Return minus the mutual information of the views in rows 0..B-1 and B..2B-1: (H,)."""
    first, second = probs.chunk(2, dim=1)  # (H, B, C) each
    joint = torch.bmm(first.transpose(1, 2), second) / first.shape[1]  # (H, C, C)
    joint = (0.5 * (joint + joint.transpose(1, 2))).clamp_min(SMALLEST)
    log_expected = joint.sum(dim=1, keepdim=True).log() + joint.sum(dim=2, keepdim=True).log()
    return -(joint * (joint.log() - ENTROPY_WEIGHT * log_expected)).sum(dim=(1, 2))
