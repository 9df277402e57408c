"""Nearest neighbor matching."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu, linear, normalize

from benchmarks.rivals.base import Features, Fitted, one_core
from benchmarks.rivals.pair_heads import STEPS, PairTrainer, log_probs
from temi.neighbors.search import mine_neighbors
from temi.training.heads import Heads

ENTROPY_WEIGHT = 5.0  # as in SCAN
CLASS_TEMPERATURE = 1.0
PARTS = 4  # of the run; the neighbors are mined again between them


@dataclass(frozen=True, kw_only=True)
class Nnm:
    """Nearest Neighbor Matching (Dang, Deng, Yang, Wei and Huang, CVPR 2021).

    Matches an image with its nearest neighbor in the batch (local) and with a neighbor among all
    images (global), both found in an embedding that training changes. Each match has SCAN's
    consistency loss and a contrast between clusters: the column of a cluster over the batch shall
    be similar to its column over the neighbors, and to no other column. The entropy term is
    SCAN's. With frozen features the embedding is the bottleneck of the heads, all heads side by
    side; global neighbors start from the features and are mined again three times. Local and
    global losses have equal weight.
    """

    name = "NNM"
    steps: int = STEPS

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        trainer = PairTrainer(features, n_clusters, nnm_loss, steps=self.steps, seed=seed)
        trainer.run(until=1 / PARTS)
        for part in range(1, PARTS):
            embedded = embed(trainer.heads, trainer.all_rows()).numpy()
            trainer.use_neighbors(mine_neighbors(embedded, trainer.n_neighbors, seed=seed).ids)
            trainer.run(until=(part + 1) / PARTS)
        return trainer.finish()


@torch.no_grad()
def embed(heads: Heads, rows: Tensor) -> Tensor:
    """Return the normalized bottlenecks of all heads side by side: (rows, H * bottleneck)."""
    hidden = gelu(linear(rows, heads.w1, heads.b1)).view(len(rows), heads.n_heads, -1)
    bottleneck = torch.baddbmm(heads.b2, hidden.transpose(0, 1), heads.w2)  # (H, rows, bottleneck)
    return normalize(bottleneck, dim=-1).transpose(0, 1).reshape(len(rows), -1)


def nnm_loss(heads: Heads, rows: Tensor) -> Tensor:
    log_first, log_global = log_probs(heads, rows).chunk(2, dim=1)  # (H, B, C) each
    log_local = log_first[:, nearest_in_batch(heads, rows[: len(rows) // 2])]
    mean = log_first.exp().mean(dim=1)  # (H, C)
    negative_entropy = torch.xlogy(mean, mean).sum(dim=-1)
    matches = match_loss(log_first, log_global) + match_loss(log_first, log_local)
    return matches + ENTROPY_WEIGHT * negative_entropy


def nearest_in_batch(heads: Heads, rows: Tensor) -> Tensor:
    """Return the index of the most similar other image of the batch: (B,)."""
    embedded = embed(heads, rows)
    # A set smaller than a batch repeats within it, and an image is no neighbor of itself.
    totals = rows.double().sum(dim=1)
    same = totals[:, None] == totals[None, :]
    return (embedded @ embedded.T).masked_fill_(same, -torch.inf).argmax(dim=1)


def match_loss(log_first: Tensor, log_second: Tensor) -> Tensor:
    """Return consistency plus contrast of clusters for each head: (H,)."""
    consistency = -torch.logsumexp(log_first + log_second, dim=-1).mean(dim=1)
    return consistency + class_contrast(log_first.exp(), log_second.exp())


def class_contrast(first: Tensor, second: Tensor) -> Tensor:
    """Contrast each cluster's column over the batch with the columns of all others: (H,)."""
    columns = torch.cat([first, second], dim=2).transpose(1, 2)  # (H, 2C, B)
    columns = normalize(columns, dim=-1)
    similarity = torch.bmm(columns, columns.transpose(1, 2)) / CLASS_TEMPERATURE  # (H, 2C, 2C)
    n_clusters = first.shape[2]
    own = torch.eye(2 * n_clusters, dtype=torch.bool)
    positive = similarity.diagonal(n_clusters, dim1=1, dim2=2).mean(dim=1)
    others = torch.logsumexp(similarity.masked_fill(own, -torch.inf), dim=2).mean(dim=1)
    return others - positive
