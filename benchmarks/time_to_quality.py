"""Seconds until the default settings reach the final quality of the paper's recipe.

The paper's recipe runs as a plain loop over heads in float32 (`reference.py`), ours by default.
Both are timed on the same machine in the same run; measuring the accuracy is not timed.

.venv/bin/python -m benchmarks.time_to_quality
.venv/bin/python -m benchmarks.time_to_quality --images photos.zip --heads 50
"""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from benchmarks import sets
from benchmarks.reference import PaperTraining
from benchmarks.sets import LabeledSet
from temi.analysis.metrics import evaluate
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer

Curve = list[tuple[int, float, float]]  # step, seconds, accuracy
LOOKS = 40


def accuracy(data: LabeledSet, clusters: npt.NDArray[np.integer]) -> float:
    found = evaluate(data.labels, clusters).accuracy
    assert found is not None
    return 100 * found


def follow(
    data: LabeledSet,
    advance: Callable[[int], bool],
    predict: Callable[[], npt.NDArray[np.integer]],
    every: int,
) -> Curve:
    """Train to the end, and measure the accuracy at regular steps."""
    curve: Curve = []
    seconds, going, steps = 0.0, True, 0
    while going:
        started = time.perf_counter()
        going = advance(every)
        seconds += time.perf_counter() - started
        steps += every
        curve.append((steps, seconds, accuracy(data, predict())))
    return curve


def paper_curve(data: LabeledSet, n_heads: int, seed: int) -> Curve:
    neighbors = torch.from_numpy(mine_neighbors(data.features, 50).ids)
    training = PaperTraining(
        torch.from_numpy(data.features), neighbors, data.n_clusters, n_heads=n_heads, seed=seed
    )

    def advance(steps: int) -> bool:
        for _ in range(min(steps, training.steps - training.step)):
            training.train_step()
        return training.step < training.steps

    return follow(data, advance, lambda: training.predict().numpy(), training.steps // LOOKS + 1)


def default_curve(data: LabeledSet, seed: int) -> Curve:
    config = TrainConfig(n_clusters=data.n_clusters, seed=seed).resolve(len(data.labels))
    assert config.n_neighbors is not None
    trainer = Trainer(data.features, mine_neighbors(data.features, config.n_neighbors).ids, config)
    return follow(
        data,
        lambda steps: not trainer.run(steps).done,
        lambda: trainer.finish().predict(data.features),
        25,
    )


def compare(data: LabeledSet, n_heads: int, seed: int) -> dict[str, Any]:
    ours, paper = default_curve(data, seed), paper_curve(data, n_heads, seed)
    target = paper[-1][2]
    reached = next((seconds for _, seconds, score in ours if score >= target), None)
    return {
        "set": data.name,
        "seed": seed,
        "paper heads": n_heads,
        "paper seconds": paper[-1][1],
        "paper accuracy": target,
        "seconds to reach it": reached,
        "times faster": None if reached is None else paper[-1][1] / reached,
        "seconds in all": ours[-1][1],
        "accuracy": ours[-1][2],
        "times faster in all": paper[-1][1] / ours[-1][1],
        "curve": ours,
        "paper curve": paper,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--images", type=Path, action="append", help="zip or folder with one folder per class"
    )
    parser.add_argument("--heads", type=int, default=16, help="of the paper's recipe")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write the curves to this file")
    arguments = parser.parse_args()
    chosen = [sets.images(path) for path in arguments.images or ()] or [sets.digits()]
    rows = []
    for data in chosen:
        for seed in range(arguments.seeds):
            rows.append(compare(data, arguments.heads, seed))
            print({name: value for name, value in rows[-1].items() if "curve" not in name})
            for name in ("curve", "paper curve"):
                points = " ".join(f"{s:.0f}s:{a:.1f}" for _, s, a in rows[-1][name])
                print(f"  {name}: {points}", flush=True)
            if arguments.json:
                arguments.json.write_text(json.dumps(rows))


if __name__ == "__main__":
    main()
