"""Quality of the clusters: TEMI, k-means, SCAN, PMI and WPMI over several seeds.

.venv/bin/python -m benchmarks.quality
.venv/bin/python -m benchmarks.quality --images photos.zip --seeds 3
"""

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks import sets
from benchmarks.sets import LabeledSet
from temi.analysis.kmeans import kmeans
from temi.analysis.metrics import evaluate
from temi.analysis.seeds import run_seeds
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer

METHODS = ("kmeans", "scan", "pmi", "wpmi", "temi")
Row = dict[str, Any]


def measure(data: LabeledSet, method: str, seeds: int) -> Row:
    found = run_seeds(lambda seed: _one(data, method, seed), range(seeds))
    row: Row = {"set": data.name, "images": len(data.labels), "method": method, "seeds": seeds}
    for name, figure in found.metrics.items():
        row[name] = figure.mean
        row[f"{name} deviation"] = figure.std
    return row


def _one(data: LabeledSet, method: str, seed: int) -> Mapping[str, float]:
    started = time.perf_counter()
    if method == "kmeans":
        clusters, steps = kmeans(data.features, data.n_clusters, seed=seed), 0
    else:
        config = TrainConfig(n_clusters=data.n_clusters, objective=method, seed=seed)
        config = config.resolve(len(data.labels))
        assert config.n_neighbors is not None
        trainer = Trainer(
            data.features, mine_neighbors(data.features, config.n_neighbors).ids, config
        )
        steps = trainer.run(trainer.total_steps).step
        clusters = trainer.finish().predict(data.features)
    seconds = time.perf_counter() - started
    scores = evaluate(data.labels, clusters)
    assert scores.accuracy is not None
    assert scores.nmi is not None
    assert scores.ari is not None
    return {
        "ACC": 100 * scores.accuracy,
        "NMI": 100 * scores.nmi,
        "ARI": 100 * scores.ari,
        "seconds": seconds,
        "steps": steps,
    }


def run(chosen: list[LabeledSet], seeds: int, methods: tuple[str, ...]) -> Iterator[Row]:
    for data in chosen:
        for method in methods:
            yield measure(data, method, seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--images", type=Path, action="append", help="zip or folder with one folder per class"
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--methods", default=",".join(METHODS))
    arguments = parser.parse_args()
    chosen = [sets.images(path) for path in arguments.images or ()] or [sets.digits(), sets.demo()]
    for row in run(chosen, arguments.seeds, tuple(arguments.methods.split(","))):
        scores = "  ".join(
            f"{name} {row[name]:5.1f}" + (f" ± {spread:.1f}" if spread is not None else "")
            for name in ("ACC", "NMI", "ARI")
            for spread in [row[f"{name} deviation"]]
        )
        print(
            f"{row['set']:14} {row['method']:7} {scores}  "
            f"{row['steps']:.0f} steps, {row['seconds']:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
