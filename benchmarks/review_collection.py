"""Reviews that prove the labels as a whole, by simulated people.

.venv/bin/python -m benchmarks.review_collection --images photos.zip --reviews 200

TEMI clusters each set with its defaults. With `--learn 0.08`, people answer about so many random
photos first, and the training learns from them; photos of a class without a group get a new one.
The intervals are compared with the truth at every look, and a review stops as soon as they suffice.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.core.clusterings.review.bands import SHARES
from app.core.clusterings.review.collection import (
    Ordered,
    Selection,
    best_selection,
    regions_of,
    selections_of,
)
from app.core.clusterings.review.collection_planning import TARGET, CollectionPlan, plan_collection
from app.core.clusterings.review.planning import MIN_PURITY
from benchmarks import sets
from benchmarks.sets import LabeledSet
from temi.config import TrainConfig
from temi.neighbors.search import mine_neighbors
from temi.training.constraints import UNKNOWN, Constraints
from temi.training.trainer import Trainer

_STEP = 5  # answers between two looks at the intervals
_PLANNED = 25  # answers between two plans
_HELD = ("held", "bounded")
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Labels:
    """The labels of a collection, and whether they are right."""

    probabilities: npt.NDArray[np.float32]
    wrong: Bools
    known: Bools  # answered before the training: always right


@dataclass(frozen=True)
class Outcome:
    answers: int
    held: bool  # all intervals held the true purity, at each look
    bounded: bool  # the lower ones
    proven: float  # true purity of what was proven


class CollectionReview:
    """One review. A photo that was seen has the right label."""

    def __init__(self, labels: Labels, order: Ints) -> None:
        edges = np.quantile(labels.probabilities, SHARES)
        order = order[~labels.known[order]]
        sure = labels.probabilities[order]
        self.bands = np.searchsorted(edges, sure, side="right").astype(np.uint8)
        self.wrong = labels.wrong[order]
        self.by_doubt = np.argsort(sure, kind="stable")
        self.seen = np.zeros(len(order), bool)
        self.known = int(labels.known.sum())
        self.images = len(labels.wrong)
        doubt = np.bincount(self.bands, 1 - sure, len(SHARES) + 1)
        self.doubts = doubt / np.maximum(np.bincount(self.bands, minlength=len(SHARES) + 1), 1)
        self.held = self.bounded = True

    def ordered(self) -> Ordered:
        return Ordered(
            bands=self.bands,
            seen=self.seen,
            wrong=self.seen & self.wrong,
            doubts=self.doubts,
            confirmed=self.known + int(self.seen.sum()),
        )

    def look(self) -> Selection | None:
        """Compares the intervals with the truth; the best selection that is proven."""
        photos = self.ordered()
        found = selections_of(regions_of(photos), photos.confirmed)
        for one in found:
            if one.purity is not None:
                true = self.purity(one)
                self.bounded &= one.purity.lower <= true + 1e-9
                self.held &= one.purity.lower - 1e-9 <= true <= one.purity.upper + 1e-9
        return best_selection(found, MIN_PURITY)

    def purity(self, one: Selection) -> float:
        left = (self.bands >= one.region.band) & ~self.seen & self.wrong
        return 1 - float(left.sum()) / one.images

    def plan(self) -> CollectionPlan:
        return plan_collection(self.ordered(), int((1 - TARGET) * self.images))

    def draw(self, band: int, count: int) -> None:
        left = np.flatnonzero((self.bands >= band) & ~self.seen)
        self.seen[left[:count]] = True

    def doubtful(self, band: int, count: int) -> None:
        left = self.by_doubt[(self.bands[self.by_doubt] < band) & ~self.seen[self.by_doubt]]
        self.seen[left[:count]] = True

    def run(self, *, guided: bool = True) -> Outcome:
        """Until the target is proven; at random over all photos if it is not guided."""
        found, plan, planned = self.look(), None, -_PLANNED
        while not self.seen.all() and (found is None or found.images < TARGET * self.images):
            answers = int(self.seen.sum())
            if guided and answers >= planned + _PLANNED:
                plan, planned = self.plan(), answers
            self.follow(plan)
            if int(self.seen.sum()) == answers:  # the plan is done, but did not suffice
                plan, planned = self.plan(), answers
                self.draw(0, _STEP)
            found = self.look()
        proven = 1.0 if found is None else self.purity(found)
        return Outcome(int(self.seen.sum()), self.held, self.bounded, proven)

    def follow(self, plan: CollectionPlan | None) -> None:
        """Answers the next few questions."""
        if plan is None or plan.pilot:
            return self.draw(0, _STEP)
        doubtful = round(_STEP * plan.doubtful / max(plan.answers, 1))
        self.doubtful(plan.band, doubtful)
        return self.draw(plan.band, _STEP - doubtful)


def homes(classes: Ints, clusters: Ints, count: int) -> tuple[Ints, Ints]:
    """The group of each class, and each photo's group once groups of one class are merged. A class
    that no group is about gets a number that merging has freed."""
    common = np.zeros((count, count), np.int64)
    np.add.at(common, (clusters, classes), 1)
    about = common.argmax(axis=1)
    home = np.full(count, -1)
    for group in np.argsort(common.sum(axis=1)):
        home[about[group]] = group
    merged = home[about][clusters]
    free = np.setdiff1d(np.arange(count), home)
    missing = np.flatnonzero(home < 0)
    home[missing] = free[: len(missing)]
    return home, merged


def train(data: LabeledSet, share: float, trainings: int) -> list[Labels]:
    """The labels after each training; without answers there is one."""
    classes = np.unique(data.labels, return_inverse=True)[1].astype(np.int64)
    config = TrainConfig(n_clusters=data.n_clusters, seed=0).resolve(len(classes))
    assert config.n_neighbors is not None
    neighbors = mine_neighbors(data.features, config.n_neighbors).ids
    first = Trainer(data.features, neighbors, config, device="cpu")
    first.run(first.total_steps)
    found = np.asarray(first.finish().predict_proba(data.features))
    home, merged = homes(classes, found.argmax(axis=1), data.n_clusters)
    wanted = home[classes]
    if not share:
        nothing = np.zeros(len(classes), bool)
        return [Labels(found.max(axis=1), merged != wanted, nothing)]
    labels = []
    for seed in range(trainings):
        known = np.zeros(len(classes), bool)
        order = np.random.default_rng(1_000 + seed).permutation(len(classes))
        known[order[: round(share * len(classes))]] = True
        told = Constraints(labels=np.where(known, wanted, UNKNOWN), clusters=merged)
        # The heads of a training with the same seed are the same: they are not trained again.
        second = Trainer(data.features, neighbors, config, constraints=told, device="cpu")
        second.load_state(first.state())
        found = np.asarray(second.finish().predict_proba(data.features))
        wrong = (found.argmax(axis=1) != wanted) & ~known
        labels.append(Labels(found.max(axis=1), wrong, known))
    return labels


def measure(data: LabeledSet, share: float, trainings: int, reviews: int) -> str:
    outcomes, chance = [], []
    labels = train(data, share, trainings)
    for number, some in enumerate(labels):
        for seed in range(-(-reviews // len(labels))):
            order = np.random.default_rng((number, seed)).permutation(len(some.wrong))
            outcomes.append(CollectionReview(some, order).run())
            if seed < 20 // len(labels):
                chance.append(CollectionReview(some, order).run(guided=False).answers)
    first, size = int(labels[0].known.sum()), len(labels[0].wrong)
    answers = first + np.array([one.answers for one in outcomes])
    wrong = np.mean([some.wrong.sum() / (~some.known).sum() for some in labels])
    held, bounded = (np.mean([getattr(one, name) for one in outcomes]) for name in _HELD)
    return (
        f"| {data.name} | {size:,} | {first} | {wrong:.1%} | {len(outcomes)} | {held:.1%} "
        f"| {bounded:.1%} | {answers.mean():,.0f} ± {answers.std():.0f} "
        f"| {first + np.mean(chance):,.0f} | {TARGET * size / answers.mean():.1f} times |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=Path, action="append", default=[])
    parser.add_argument("--reviews", type=int, default=200)
    parser.add_argument("--learn", type=float, default=0.0, help="share that is answered first")
    parser.add_argument("--trainings", type=int, default=6, help="with --learn")
    given = parser.parse_args()
    print(
        "| set | images | answers before training | then wrong | reviews | intervals that always "
        "hold | lower bounds | answers in all | in random order | than by hand |"
    )
    print(f"|{'---|' * 10}")
    for data in [sets.digits(), sets.demo(), *(sets.images(path) for path in given.images)]:
        print(measure(data, given.learn, given.trainings, given.reviews), flush=True)


if __name__ == "__main__":
    main()
