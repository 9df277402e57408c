"""Calibration error of the probabilities: raw, calibrated without labels, and after reviews.

.venv/bin/python -m benchmarks.calibration --images photos.zip --images more.zip

A label is right if it is the class that is matched to its cluster, one to one. Reviews are images
drawn at random, evenly over the probabilities; the error is measured on all images of the set.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks import sets
from benchmarks.sets import CACHE, LabeledSet
from temi.analysis.metrics import right_labels
from temi.analysis.reliability import measure_reliability
from temi.calibration import fit_calibration, fit_without_labels
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer

_REVIEWS = (50, 100, 200, 500)
_DRAWS = 20  # samples of reviews per training


class Trained(NamedTuple):
    probabilities: npt.NDArray[np.float32]  # (N, C)
    neighbors: npt.NDArray[np.int64]  # (N, k)


def train(data: LabeledSet, seed: int) -> Trained:
    """Trains with the default settings; what it found is cached."""
    cached = CACHE / f"{data.name}-trained-{seed}.npz"
    if not cached.exists():
        config = TrainConfig(n_clusters=data.n_clusters, seed=seed).resolve(len(data.labels))
        assert config.n_neighbors is not None
        neighbors = mine_neighbors(data.features, config.n_neighbors).ids
        trainer = Trainer(data.features, neighbors, config, device="cpu")
        trainer.run(trainer.total_steps)
        probabilities = trainer.finish().predict_proba(data.features)
        np.savez(cached, probabilities=probabilities, neighbors=neighbors)
    with np.load(cached) as stored:
        return Trained(stored["probabilities"], stored["neighbors"])


def measure(data: LabeledSet, seed: int) -> dict[str, list[float]]:
    """Errors by what the calibration knows."""
    trained = train(data, seed)
    assigned, sure = trained.probabilities.argmax(axis=1), trained.probabilities.max(axis=1)
    right = right_labels(data.labels, assigned)[1].astype(np.float64)
    prior = fit_without_labels(sure, assigned, trained.neighbors)
    found = {
        "raw": [measure_reliability(sure, right).error],
        "0": [measure_reliability(prior.apply(sure), right).error],
    }
    order = np.argsort(sure, kind="stable")
    for count in _REVIEWS:
        errors = []
        for draw in range(_DRAWS):
            generator = np.random.default_rng([seed, draw])
            places = (np.arange(count) + generator.random(count)) * len(order) / count
            rows = order[places.astype(np.int64)]
            fitted = fit_calibration(sure[rows], right[rows], prior=prior)
            errors.append(measure_reliability(fitted.apply(sure), right).error)
        found[str(count)] = errors
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    columns = ("raw", "0", *map(str, _REVIEWS))
    print(f"| set | raw | no reviews | {' | '.join(map(str, _REVIEWS))} |")
    print(f"|{'---|' * (1 + len(columns))}")
    for path in arguments.images:
        runs = [measure(sets.images(path), seed) for seed in range(arguments.seeds)]
        cells = []
        for name in columns:
            means = [100 * float(np.mean(run[name])) for run in runs]
            cells.append(f"{np.mean(means):.1f} ± {np.std(means):.1f}")
        print(f"| {path.stem} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
