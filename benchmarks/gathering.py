"""How pure the groups of refused images are: classes left out of the training come as new photos.

.venv/bin/python -m benchmarks.gathering --images photos.zip --images more.zip

Two classes are left out, three of sets with more than ten. All their images come, and a fifth of
the other images that was held back. What the novelty refuses is gathered. `--radius` compares other
distances: the share of the training images that are nearer to their nearest one.
"""

import argparse
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import sets
from benchmarks.sets import LabeledSet
from temi.gathering import FALSE_ALARM_RATE, gather
from temi.novelty import fit_novelty

_HELD_BACK = 5  # one in so many images of the training set is new
_MANY_CLASSES = 10


@dataclass(frozen=True, kw_only=True)
class Found:
    novel: int  # images of the left-out classes
    refused: int  # of them
    known: int  # refused images of other classes
    groups: int
    gathered: int  # images in groups
    gathered_novel: int
    majority: int  # images of the most frequent class of their group
    classes: int  # left-out classes that are the most frequent one of a group
    left_out: int

    @property
    def purity(self) -> float:
        return self.majority / self.gathered if self.gathered else float("nan")


def measure(data: LabeledSet, seed: int, rate: float, share: float) -> Found:
    generator = np.random.default_rng(seed)
    labels = np.array(data.labels)
    classes = generator.permutation(sorted(set(data.labels)))
    left_out = classes[: 3 if len(classes) > _MANY_CLASSES else 2]
    order = generator.permutation(len(labels))
    held_back, trained = np.split(order, [len(order) // _HELD_BACK])
    novel = np.isin(labels, left_out)
    detector = fit_novelty(data.features[np.sort(trained[~novel[trained]])])
    asked = np.concatenate([np.flatnonzero(novel), held_back[~novel[held_back]]])
    refused = asked[detector.novelty(data.features[asked]) > 1 - rate]
    groups = [
        refused[group.rows] for group in gather(data.features[refused], detector.distance_at(share))
    ]
    first = [Counter(labels[rows].tolist()).most_common(1)[0] for rows in groups]
    return Found(
        novel=int(novel.sum()),
        refused=int(novel[refused].sum()),
        known=int((~novel[refused]).sum()),
        groups=len(groups),
        gathered=sum(map(len, groups)),
        gathered_novel=sum(int(novel[rows].sum()) for rows in groups),
        majority=sum(count for _, count in first),
        classes=len({name for name, _ in first} & set(left_out.tolist())),
        left_out=len(left_out),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", required=True)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.05, help="false alarm rate of the requests")
    parser.add_argument("--radius", type=float, action="append", help="default: 0.99")
    arguments = parser.parse_args()
    print(
        "| set | radius | seed | left out | refused | known refused | groups | held "
        "| purity | classes |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for path in arguments.images:
        data = sets.images(path)
        for share in arguments.radius or [1 - FALSE_ALARM_RATE]:
            for seed in range(arguments.seeds):
                found = measure(data, seed, arguments.rate, share)
                print(
                    f"| {data.name} | {share:g} | {seed} | {found.novel} | {found.refused} "
                    f"| {found.known} | {found.groups} | {found.gathered_novel} "
                    f"| {found.purity:.1%} | {found.classes} of {found.left_out} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
