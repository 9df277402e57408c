"""How well images are told apart from those of the training: unrelated sets, and left-out classes.

.venv/bin/python -m benchmarks.novelty --images photos.zip --images more.zip
"""

import argparse
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

from benchmarks import sets
from benchmarks.sets import LabeledSet
from temi.novelty import fit_novelty

_HELD_BACK = 5  # one in so many images of the training set is new
_MAX_CLASSES = 10  # left out in turn
_RATES = (0.01, 0.05)

Rows = npt.NDArray[np.float32]


def auroc(trained: Rows, known: Rows, novel: Rows) -> float:
    """The chance that a novel image has a higher score than a new image of a known kind."""
    detector = fit_novelty(trained)
    scores = np.concatenate([detector.score(known), detector.score(novel)])
    return float(roc_auc_score(np.repeat([0, 1], [len(known), len(novel)]), scores))


def measure(data: LabeledSet, others: list[LabeledSet], seed: int) -> dict[str, list[float]]:
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(data.labels))
    new, trained = np.split(order, [len(order) // _HELD_BACK])
    trained = np.sort(trained)
    detector = fit_novelty(data.features[trained])
    novelty = detector.novelty(data.features[new])
    found = {f"refused at {rate}": [float(np.mean(novelty > 1 - rate))] for rate in _RATES}
    found["unrelated"] = [
        auroc(data.features[trained], data.features[new], other.features) for other in others
    ]
    labels = np.array(data.labels)
    classes = generator.permutation(sorted(set(data.labels)))[:_MAX_CLASSES]
    found["left out"] = [
        auroc(
            data.features[trained[labels[trained] != name]],
            data.features[new[labels[new] != name]],
            data.features[labels == name],
        )
        for name in classes
    ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    chosen = [sets.images(path) for path in arguments.images]
    print("| set | unrelated sets | the worst of them | a class left out | the worst | refused |")
    print("|---|---|---|---|---|---|")
    for data in chosen:
        others = [other for other in chosen if other is not data]
        runs = [measure(data, others, seed) for seed in range(arguments.seeds)]
        cells = []
        for name in ("unrelated", "left out"):
            means = [np.mean(run[name]) for run in runs]
            worst = min(value for run in runs for value in run[name])
            cells += [f"{np.mean(means):.3f} ± {np.std(means):.3f}", f"{worst:.2f}"]
        refused = (np.mean([run[f"refused at {rate}"] for run in runs]) for rate in _RATES)
        cells.append(", ".join(f"{share:.1%}" for share in refused))
        print(f"| {data.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
