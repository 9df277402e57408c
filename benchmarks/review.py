"""Reviews of real clusters by simulated people: do the intervals hold, and what does it cost?

.venv/bin/python -m benchmarks.review --images photos.zip --images more.zip --reviews 200

TEMI clusters each set with its defaults. People answer whether an image has the class that most
images of its group have, and name the right group if there is one. Every review draws its sample in
another random order.
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from app.core.clusterings.review.bands import SHARES
from app.core.clusterings.review.planning import MIN_PURITY, PILOT, Plan, plan_clusters
from app.core.clusterings.review.purity import Band, Purity, purity_of
from app.core.clusterings.review.queue import spread
from benchmarks import sets
from benchmarks.sets import LabeledSet
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.trainer import Trainer

TARGET = 0.95  # of the collection
_TOGETHER = 25  # images of a group in a row, as in the queue
_BANDS = len(SHARES) + 1
_NO_GROUP = -1
Ints = npt.NDArray[np.int64]
Row = dict[str, Any]


@dataclass(frozen=True)
class Groups:
    """A clustering with the true classes; group g is about the class `about[g]`."""

    name: str
    clusters: Ints
    probabilities: npt.NDArray[np.float32]
    classes: Ints
    about: Ints

    @property
    def purity(self) -> float:
        return float((self.about[self.clusters] == self.classes).mean())


def cluster(data: LabeledSet) -> Groups:
    config = TrainConfig(n_clusters=data.n_clusters, seed=0).resolve(len(data.features))
    assert config.n_neighbors is not None
    neighbors = mine_neighbors(data.features, config.n_neighbors).ids
    trainer = Trainer(data.features, neighbors, config, device="cpu")
    trainer.run(trainer.total_steps)
    found = np.asarray(trainer.finish().predict_proba(data.features))
    clusters = found.argmax(axis=1)
    classes = np.unique(data.labels, return_inverse=True)[1]
    counts = np.zeros((data.n_clusters, data.n_clusters), np.int64)
    np.add.at(counts, (clusters, classes), 1)
    return Groups(data.name, clusters, found.max(axis=1), classes, counts.argmax(axis=1))


class Review:
    """One review of a clustering. Images are moved as the answers say."""

    def __init__(self, groups: Groups, seed: int) -> None:
        self.groups = groups
        self.current = groups.clusters.copy()
        self.asked = groups.clusters.copy()  # the group that the answer was about
        self.order = np.random.default_rng(seed).permutation(len(self.current))
        edges = np.quantile(groups.probabilities, SHARES)
        self.band = np.searchsorted(edges, groups.probabilities, side="right")
        self.seen, self.sampled, self.wrong = (np.zeros(len(self.current), bool) for _ in range(3))
        sizes = np.bincount(groups.clusters, minlength=len(groups.about))
        self.home = np.full(groups.classes.max() + 1, _NO_GROUP)  # the largest group of each class
        for group in np.argsort(sizes):
            self.home[groups.about[group]] = group

    def bands(self) -> list[list[Band]]:
        placed = self.current >= 0
        every = np.ones_like(placed)
        doubt = self._count(every, self.groups.clusters, 1 - self.groups.probabilities)
        doubt /= np.maximum(self._count(every, self.groups.clusters), 1)
        figures = {
            "right": self._count(self.seen & placed, self.current),
            "unreviewed": self._count(~self.seen & placed, self.current),
            "sampled": self._count(self.sampled, self.asked),
            "sampled_wrong": self._count(self.sampled & self.wrong, self.asked),
            "chosen": self._count(self.seen & ~self.sampled, self.asked),
            "chosen_wrong": self._count(self.seen & ~self.sampled & self.wrong, self.asked),
        }
        return [
            [
                Band(
                    doubt=float(doubt[group, band]),
                    **{name: int(values[group, band]) for name, values in figures.items()},
                )
                for band in range(_BANDS)
            ]
            for group in range(len(self.groups.about))
        ]

    def answer(self, images: Ints, *, sample: bool) -> None:
        self.seen[images], self.sampled[images] = True, sample
        self.asked[images] = self.current[images]
        classes = self.groups.classes[images]
        wrong = classes != self.groups.about[self.current[images]]
        self.wrong[images] = wrong
        self.current[images[wrong]] = self.home[classes[wrong]]

    def follow(self, group: int, plan: Plan, bands: Sequence[Band]) -> None:
        """Answers the next questions about a group, as the queue would ask them."""
        left = self.order[(self.current[self.order] == group) & ~self.seen[self.order]]
        for band, count in spread(bands, plan.bands, min(plan.sample, _TOGETHER)).items():
            self.answer(left[self.band[left] == band][:count], sample=True)
        if not plan.sample:
            doubtful = left[self.band[left] < plan.bands]
            sure = self.groups.probabilities[doubtful]
            self.answer(doubtful[np.argsort(sure, kind="stable")][:_TOGETHER], sample=False)

    def purity(self, group: int) -> float:
        members = self.groups.classes[self.current == group]
        return float((members == self.groups.about[group]).mean()) if len(members) else 1.0

    def finished(self, bands: Sequence[Sequence[Band]], found: Sequence[Purity | None]) -> float:
        """The share of images with a finished label."""
        done = int((self.current == _NO_GROUP).sum())
        for some, purity in zip(bands, found, strict=True):
            proven = purity is not None and purity.reaches(MIN_PURITY)
            done += sum(band.right + (band.unreviewed if proven else 0) for band in some)
        return done / len(self.current)

    def _count(
        self,
        images: npt.NDArray[np.bool_],
        groups: Ints,
        weights: npt.NDArray[np.float32] | None = None,
    ) -> npt.NDArray[np.float64]:
        cells = groups[images] * _BANDS + self.band[images]
        given = None if weights is None else weights[images]
        shape = (len(self.groups.about), _BANDS)
        return np.bincount(cells, given, shape[0] * _BANDS).reshape(shape).astype(np.float64)


@dataclass(frozen=True)
class Outcome:
    answers: int
    held: int  # intervals that hold the true purity
    bounded: int  # intervals whose lower bound is right
    intervals: int


def guided(groups: Groups, seed: int) -> Outcome:
    """By the queue, until the target is reached. The intervals are checked after the first sample
    of all groups, and at the end."""
    review, outcome, sampled = Review(groups, seed), Outcome(0, 0, 0, 0), False
    while True:
        bands = review.bands()
        found = [purity_of(some) for some in bands]
        plans = plan_clusters(bands)
        todo = [group for group, plan in enumerate(plans) if plan.answers]
        first = [group for group in todo if _sampled(bands[group]) < PILOT and plans[group].sample]
        end = not todo or review.finished(bands, found) >= TARGET
        if end or (not first and not sampled):
            sampled, outcome = True, _checked(review, found, outcome)
        if end:
            return outcome
        todo.sort(key=lambda group: -plans[group].gain)
        for group in first or todo[: max(1, len(todo) // 3)]:
            review.follow(group, plans[group], bands[group])


def random(groups: Groups, seed: int) -> int:
    """Images in random order, with the same intervals; the number of answers."""
    review, step = Review(groups, seed), max(len(groups.classes) // 100, 1)
    for start in range(0, len(review.order), step):
        review.answer(review.order[start : start + step], sample=True)
        bands = review.bands()
        if review.finished(bands, [purity_of(some) for some in bands]) >= TARGET:
            return start + step
    return len(review.order)


def _sampled(bands: Sequence[Band]) -> int:
    return sum(band.sampled for band in bands)


def _checked(review: Review, found: Sequence[Purity | None], before: Outcome) -> Outcome:
    pairs = [(one, review.purity(group)) for group, one in enumerate(found) if one is not None]
    bounded = [one.lower - 1e-9 <= true for one, true in pairs]
    held = [
        low and true <= one.upper + 1e-9 for low, (one, true) in zip(bounded, pairs, strict=True)
    ]
    return Outcome(
        answers=int(review.seen.sum()),
        held=before.held + sum(held),
        bounded=before.bounded + sum(bounded),
        intervals=before.intervals + len(pairs),
    )


def measure(groups: Groups, reviews: int) -> Row:
    outcomes = [guided(groups, seed) for seed in range(reviews)]
    answers = np.array([one.answers for one in outcomes])
    by_chance = np.array([random(groups, seed) for seed in range(min(reviews, 20))])
    total = sum(one.intervals for one in outcomes)
    return {
        "set": groups.name,
        "images": len(groups.classes),
        "groups": len(groups.about),
        "purity": groups.purity,
        "coverage": sum(one.held for one in outcomes) / total,
        "lower bound": sum(one.bounded for one in outcomes) / total,
        "answers": float(answers.mean()),
        "deviation": float(answers.std()),
        "random": float(by_chance.mean()),
        "by hand": round(TARGET * len(groups.classes)),
    }


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| set | images | groups | purity | intervals that hold | lower bounds that hold "
        "| answers | in random order | by hand |",
        f"|{'---|' * 9}",
    ]
    for row in rows:
        lines.append(
            f"| {row['set']} | {row['images']:,} | {row['groups']} | {row['purity']:.1%} "
            f"| {row['coverage']:.1%} | {row['lower bound']:.1%} "
            f"| {row['answers']:,.0f} ± {row['deviation']:.0f} "
            f"| {row['random']:,.0f} ({row['random'] / row['answers']:.1f} times) "
            f"| {row['by hand']:,} ({row['by hand'] / row['answers']:.1f} times) |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", default=[])
    parser.add_argument("--reviews", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    chosen = [sets.digits(), sets.demo(), *(sets.images(path) for path in given.images)]
    rows = []
    for data in chosen:
        rows.append(measure(cluster(data), given.reviews))
        print(table(rows[-1:]), flush=True)
    print(table(rows))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
