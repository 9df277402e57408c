"""What reviews bring: train, answer for a few images by the true labels, train with the answers.

.venv/bin/python -m benchmarks.learning --images photos.zip --images more.zip --seeds 3

The accuracy is that of the images that were not reviewed. `kept` has the clusters of the first
training matched to the classes once, `matched` matches them again after each training.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from benchmarks import sets
from benchmarks.rivals.base import one_core
from benchmarks.sets import LabeledSet
from temi.analysis.seeds import run_seeds
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.constraints import UNKNOWN, Constraints
from temi.training.trainer import Trainer

SHARE = 0.02  # of the images that are reviewed
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Reviewed:
    """The cluster that each image should be in, and the images that were asked about."""

    wanted: Integers  # (N,)
    clusters: Integers  # (N,): of the first training
    asked: npt.NDArray[np.bool_]  # (N,)

    def which(self) -> Constraints:
        """Answers that name the right cluster."""
        labels = np.where(self.asked, self.wanted, UNKNOWN)
        return Constraints(labels=labels, clusters=self.clusters)

    def yes_or_no(self) -> Constraints:
        """Answers that only say whether the cluster is right."""
        right = self.wanted == self.clusters
        wrong = np.flatnonzero(self.asked & ~right)
        return Constraints(
            labels=np.where(self.asked & right, self.wanted, UNKNOWN),
            clusters=self.clusters,
            refused=np.stack([wrong, self.clusters[wrong]], axis=1),
        )


def match(classes: Integers, clusters: Integers, n_clusters: int) -> Integers:
    """The cluster of each class."""
    common = np.zeros((n_clusters, n_clusters), dtype=np.int64)
    np.add.at(common, (classes, clusters), 1)
    return np.asarray(linear_sum_assignment(common, maximize=True)[1], dtype=np.int64)


@one_core()
def measure_once(data: LabeledSet, seed: int, share: float) -> dict[str, float]:
    classes = np.unique(data.labels, return_inverse=True)[1].astype(np.int64)
    config = TrainConfig(n_clusters=data.n_clusters, seed=seed).resolve(len(classes))
    assert config.n_neighbors is not None
    neighbors = mine_neighbors(data.features, config.n_neighbors).ids
    first = Trainer(data.features, neighbors, config, device="cpu")
    first.run(first.total_steps)
    clusters = first.finish().predict(data.features)
    chosen = match(classes, clusters, data.n_clusters)
    asked = np.zeros(len(classes), dtype=bool)
    generator = np.random.default_rng(seed)
    asked[generator.choice(len(classes), round(share * len(classes)), replace=False)] = True
    reviewed = Reviewed(chosen[classes], clusters, asked)
    found = {"before": clusters}
    for name, constraints in (("which", reviewed.which()), ("yes or no", reviewed.yes_or_no())):
        # The heads of a training with the same seed are the same: they are not trained again.
        second = Trainer(data.features, neighbors, config, constraints=constraints, device="cpu")
        second.load_state(first.state())
        found[name] = second.finish().predict(data.features)
    return dict(_accuracies(found, classes[~asked], chosen, ~asked))


def _accuracies(
    found: dict[str, Integers], classes: Integers, chosen: Integers, rest: npt.NDArray[np.bool_]
) -> Iterator[tuple[str, float]]:
    for name, clusters in found.items():
        again = match(classes, clusters[rest], len(chosen))
        for kind, numbers in (("kept", chosen), ("matched", again)):
            yield f"{name}, {kind}", 100 * float((numbers[classes] == clusters[rest]).mean())


def measure(data: LabeledSet, seeds: int, share: float = SHARE) -> dict[str, Any]:
    found = run_seeds(lambda seed: measure_once(data, seed, share), range(seeds))
    row: dict[str, Any] = {"set": data.name, "reviewed": round(share * len(data.labels))}
    for name, figure in found.metrics.items():
        row[name] = f"{figure.mean:.1f}" + ("" if figure.std is None else f" ± {figure.std:.1f}")
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--images", type=Path, action="append", help="zip or folder with one folder per class"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=SHARE, help="of the images, reviewed")
    arguments = parser.parse_args()
    paths = arguments.images or ()
    for number, path in enumerate(paths or (None,)):
        row = measure(
            sets.demo() if path is None else sets.images(path), arguments.seeds, arguments.share
        )
        if number == 0:
            print(f"| {' | '.join(row)} |\n|{'---|' * len(row)}")
        print(f"| {' | '.join(map(str, row.values()))} |", flush=True)


if __name__ == "__main__":
    main()
