"""Training speed compared with the matrix peak and with a loop over heads.

.venv/bin/python -m benchmarks.training
"""

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from benchmarks.reference import PaperTraining
from temi.bench import best_rate, matrix_peak, train_gflop
from temi.config import TrainConfig
from temi.device import resolve_device
from temi.training.trainer import Trainer

SHAPES = tuple(itertools.product((384, 1280), (10, 100)))  # features, clusters
Row = dict[str, Any]


def measure(dim: int, n_clusters: int, n_heads: int, repeats: int) -> Row:
    """Return GFLOP/s of the peak, of `temi` and of the loop: the best of alternating runs."""
    device = resolve_device("auto")
    dtype = torch.float32
    config = TrainConfig(
        n_clusters=n_clusters,
        n_heads=n_heads,
        batch_size=512,
        hidden_dim=512,
        bottleneck_dim=256,
        smoothing=False,
        projection_dim=None,
        early_stop=False,
    )
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2048, dim)).astype(np.float32)
    neighbors = rng.integers(0, 2048, size=(2048, 50))
    ours = Trainer(features, neighbors, config)
    loop = PaperTraining(
        torch.from_numpy(features), torch.from_numpy(neighbors), n_clusters, n_heads=n_heads
    )
    gflop = train_gflop(ours.config, dim)
    rates = []
    for _ in range(repeats):
        peak = matrix_peak(dtype, device)
        rates.append((peak, best_rate(lambda: ours.run(1), gflop, 1), _loop_rate(loop, gflop)))
    peak, fast, slow = (max(column) for column in zip(*rates, strict=True))
    return {
        "features": dim,
        "clusters": n_clusters,
        "heads": n_heads,
        "peak GFLOP/s": peak,
        "train GFLOP/s": fast,
        "share of peak": fast / peak,
        "loop GFLOP/s": slow,
        "times the loop": fast / slow,
    }


def _loop_rate(loop: PaperTraining, gflop: float) -> float:
    return best_rate(loop.train_step, gflop, 1)


def run(n_heads: int = 50, repeats: int = 2) -> Iterator[Row]:
    for dim, n_clusters in SHAPES:
        yield measure(dim, n_clusters, n_heads, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--heads", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    for row in run(arguments.heads, arguments.repeats):
        print(", ".join(f"{name} {value:.4g}" for name, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
