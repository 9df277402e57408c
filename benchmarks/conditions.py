"""Circumstances in which clusters are measured: new, few or unevenly divided images."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.sets import LabeledSet

CONDITIONS = ("all", "new", "few", "uneven", "noise")
FEW = 300  # images
RATIO = 10  # of the largest class to the smallest


@dataclass(frozen=True, kw_only=True)
class Trial:
    """The rows to train on, and those to measure; they are the same unless images are new."""

    trained: npt.NDArray[np.int64]
    measured: npt.NDArray[np.int64]


def make_trial(condition: str, data: LabeledSet, seed: int) -> Trial:
    rows = np.arange(len(data.labels))
    generator = np.random.default_rng(seed)
    if condition == "new":
        shuffled = generator.permutation(rows)
        held_back = len(rows) // 5
        return Trial(trained=np.sort(shuffled[held_back:]), measured=np.sort(shuffled[:held_back]))
    if condition == "few":
        rows = np.sort(generator.choice(rows, min(FEW, len(rows)), replace=False))
    if condition == "uneven":
        rows = _uneven(data.labels, generator)
    return Trial(trained=rows, measured=rows)


def _uneven(labels: list[str], generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Keep fewer and fewer images of each class, in random order of the classes."""
    names = np.array(labels)
    classes = generator.permutation(sorted(set(labels)))
    size = min(np.count_nonzero(names == name) for name in classes)
    kept = []
    for place, name in enumerate(classes):
        share = RATIO ** (-place / max(1, len(classes) - 1))
        rows = np.flatnonzero(names == name)
        kept.append(generator.choice(rows, max(2, round(size * share)), replace=False))
    return np.sort(np.concatenate(kept))
