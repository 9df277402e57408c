"""TURTLE: the labeling that a linear classifier learns best."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from benchmarks.rivals.base import Features, Fitted, check, one_core
from benchmarks.rivals.spaces import UnitSpace

ENTROPY_WEIGHT = 10.0  # gamma
INNER_STEPS = 10  # per outer step
BATCH = 1024
OUTER_RATE = 0.03  # the paper takes 0.001 for both, and 6,000 outer steps
INNER_RATE = 0.01
SCALE = 10.0  # of the unit rows, as a temperature of 0.1


@dataclass(frozen=True, kw_only=True)
class Turtle:
    """TURTLE (Gadetsky, Jiang and Brbic, ICML 2024), with one space of features.

    Searches the labeling of the images that a linear classifier on the features learns best. The
    labels are a softmax of a linear map with normalized columns. In turn, the classifier takes a
    few steps on the current labels, and the map takes one step to lower the classifier's
    cross-entropy, while an entropy term keeps all clusters in use. As in the paper's efficient
    form, the gradient of the map ignores that the classifier depends on the labels, and the
    classifier continues from its last weights. Shortened to 400 outer steps at higher learning
    rates.
    """

    name = "TURTLE"
    steps: int = 400

    @one_core()
    def fit(self, features: Features, n_clusters: int, *, seed: int) -> Fitted:
        check(features, n_clusters)
        space = UnitSpace.fit(features)
        rows = SCALE * space.rows(features)
        generator = torch.Generator().manual_seed(seed)
        shape = (rows.shape[1], n_clusters)
        labeling = torch.randn(shape, generator=generator).requires_grad_()
        classifier = torch.zeros(shape, requires_grad=True)
        outer = torch.optim.Adam([labeling], OUTER_RATE)
        inner = torch.optim.Adam([classifier], INNER_RATE)
        for _ in range(self.steps):
            batch = rows[torch.randperm(len(rows), generator=generator)[:BATCH]]
            labels = (batch @ normalize(labeling, dim=0)).softmax(dim=-1)  # (B, C)
            for _ in range(INNER_STEPS):
                _step(inner, cross_entropy(batch @ classifier, labels.detach()))
            _step(outer, labeling_loss(batch @ classifier.detach(), labels))
        return space.fitted(features, normalize(labeling, dim=0), torch.zeros(n_clusters))


def labeling_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the classifier's cross-entropy minus the weighted entropy of the mean label."""
    mean = labels.mean(dim=0)  # (C,)
    return cross_entropy(logits, labels) + ENTROPY_WEIGHT * torch.xlogy(mean, mean).sum()


def _step(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    torch.autograd.backward(loss)
    optimizer.step()
