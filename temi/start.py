"""A good place to start from: every head first learns a k-means clustering of its own.

From random weights, the first few hundred steps of a short run go into breaking the symmetry
between clusters; from here they go into improving on k-means.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import nll_loss

from temi.kmeans import fit_kmeans, unit_rows
from temi.standardize import chunks

# Centers are found on at most this many rows: more would cost time and move them little.
_MAX_ROWS = 10_000
# A single run may merge two groups and split a third: heads share the tightest few of many.
_RUNS = 32
_KEPT = 4


def kmeans_targets(
    features: npt.NDArray[np.floating], *, n_clusters: int, n_heads: int, seed: int
) -> Tensor:
    """One k-means labelling per head, dealt out from the best of several runs: (H, N)."""
    rng = np.random.default_rng(seed)
    n = features.shape[0]
    picked = np.sort(rng.permutation(n)[: max(_MAX_ROWS, 4 * n_clusters)])
    sample = unit_rows(features[picked])
    seeds = rng.integers(2**31, size=_RUNS)
    runs = [fit_kmeans(sample, n_clusters, n_init=1, seed=int(s)) for s in seeds]
    best = sorted(runs, key=lambda run: float(run.inertia_))[:_KEPT]
    centers = torch.from_numpy(
        np.stack([best[head % _KEPT].cluster_centers_ for head in range(n_heads)])
    ).float()
    offsets = centers.square().sum(dim=-1).unsqueeze(1) / 2  # (H, 1, C)
    targets = torch.empty((n_heads, n), dtype=torch.int64)
    for rows in chunks(n):
        block = torch.from_numpy(unit_rows(features[rows]))
        nearness = block @ centers.transpose(1, 2) - offsets  # (H, rows, C)
        targets[:, rows] = nearness.argmax(dim=-1)
    return targets


def start_loss(log_student: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy of (H, B, C) log-probabilities with (H, B) labels, over pairs and heads."""
    return nll_loss(log_student.transpose(1, 2), targets)
