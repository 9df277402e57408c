"""TSP: a head that starts from k-means, then trains on its own sharpened labels."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize, one_hot

from benchmarks.rivals.base import Features, Fitted, check, one_core
from benchmarks.rivals.spaces import UnitSpace
from temi.analysis.kmeans import kmeans

SCALE = 10.0  # of the unit rows, as a temperature of 0.1
BATCH = 256
KMEANS_STEPS = 50  # on the labels of k-means
ROUNDS = 10  # of self-training
STEPS_PER_ROUND = 20
LEARNING_RATE = 0.01


class Tsp:
    """TSP, clustering with self-supervised pretrained features (Zhou and Zhang 2022).

    A clustering head on pretrained features starts from k-means: its weights are the centers, and
    it first learns the labels of k-means. It then trains on its own soft labels, sharpened and
    divided by the size of the clusters as in DEC (Xie, Girshick and Farhadi, ICML 2016), and made
    anew each round. The TEMI paper describes only the start from k-means, so the self-training
    is our choice; the head is linear and there are no augmentations.
    """

    name = "TSP"

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        space = UnitSpace.fit(features)
        rows = space.rows(features)  # (N, P)
        labels = torch.from_numpy(kmeans(features, n_clusters, seed=seed))
        targets = one_hot(labels, n_clusters).float()  # (N, C)
        head = _Head(normalize(rows.T @ targets, dim=0), seed)  # an empty cluster has weight 0
        head.train(rows, targets, KMEANS_STEPS)
        for _ in range(ROUNDS):
            head.train(rows, sharpen(head.logits(rows).softmax(dim=-1)), STEPS_PER_ROUND)
        return space.fitted(features, head.weight, head.bias)


class _Head:
    def __init__(self, weight: Tensor, seed: int) -> None:
        self.weight = weight.clone().requires_grad_()  # (P, C)
        self.bias = torch.zeros(weight.shape[1], requires_grad=True)
        self._optimizer = torch.optim.Adam([self.weight, self.bias], LEARNING_RATE)
        self._generator = torch.Generator().manual_seed(seed)

    def logits(self, rows: Tensor) -> Tensor:
        return SCALE * (rows @ self.weight + self.bias)

    def train(self, rows: Tensor, targets: Tensor, steps: int) -> None:
        for _ in range(steps):
            batch = torch.randint(len(rows), (BATCH,), generator=self._generator)
            loss = cross_entropy(self.logits(rows[batch]), targets[batch])
            self._optimizer.zero_grad()
            torch.autograd.backward(loss)
            self._optimizer.step()


def sharpen(probs: Tensor) -> Tensor:
    """Return targets that favor confident clusters of average size: (N, C)."""
    probs = probs.detach()
    weight = probs**2 / probs.sum(dim=0).clamp_min(1e-9)
    return weight / weight.sum(dim=1, keepdim=True)
