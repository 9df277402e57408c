"""The purity of the labels as a whole, and the plan that proves it."""

import numpy as np
import pytest

from app.core.clusterings.review.collection import (
    Ordered,
    best_selection,
    errors_of,
    regions_of,
    selections_of,
)
from app.core.clusterings.review.collection_planning import PILOT, plan_collection
from benchmarks.review_collection import CollectionReview, Labels

DOUBTS = np.array([0.3, 0.01])


def photos(bands: str, answers: str, confirmed: int = 0) -> Ordered:
    """One digit a photo; y: right, n: wrong, -: not seen."""
    return Ordered(
        bands=np.array([int(band) for band in bands], np.uint8),
        seen=np.array([answer != "-" for answer in answers]),
        wrong=np.array([answer == "n" for answer in answers]),
        doubts=DOUBTS,
        confirmed=confirmed,
    )


def labels(seed: int, size: int, wrong: float) -> Labels:
    """Wrong photos are three times as frequent in the less sure half."""
    random = np.random.default_rng(seed)
    sure = random.uniform(0.5, 1, size).astype(np.float32)
    weights = np.where(sure < 0.75, 3.0, 1.0)
    bad = np.zeros(size, bool)
    chosen = random.choice(size, round(wrong * size), replace=False, p=weights / weights.sum())
    bad[chosen] = True
    return Labels(sure, bad, np.zeros(size, bool))


def test_the_sample_ends_at_the_first_photo_without_an_answer() -> None:
    everything, sure = regions_of(photos("0101101", "yyn-y-n"))
    assert (everything.size, everything.drawn, everything.drawn_wrong) == (7, 3, 1)
    assert (everything.seen, everything.found) == (5, 2)
    assert (sure.size, sure.drawn, sure.drawn_wrong, sure.found) == (4, 1, 0, 1)


def test_photos_that_people_have_seen_are_counted() -> None:
    [everything, _] = selections_of(regions_of(photos("0101", "ynyy", confirmed=4)), 4)
    assert everything.purity is not None
    assert tuple(everything.purity) == (1, 1, 1)
    assert everything.images == 4
    nothing = selections_of(regions_of(photos("0101", "----")), 0)
    assert [one.purity for one in nothing] == [None, None]
    assert best_selection(nothing, 0.95) is None


def test_the_selections_share_the_error() -> None:
    for count in range(1, 8):
        assert errors_of(count, 0.95).sum() == pytest.approx(0.05)
        assert (errors_of(count, 0.95) > 0).all()


def test_a_plan_begins_with_photos_of_all_bands() -> None:
    found = photos("01" * 500, "-" * 1000)
    plan = plan_collection(found, 50)
    assert plan.pilot == PILOT
    assert PILOT <= plan.answers < 1000


def test_a_plan_leaves_the_least_sure_photos_out_as_far_as_it_may() -> None:
    bands = "0" * 10 + "1" * 190
    answers = ("n" * 5 + "-" * 5) + "y" * 60 + "-" * 130
    order = np.random.default_rng(0).permutation(200)
    mixed = photos(
        "".join(bands[i] for i in order), "".join(answers[i] for i in order), confirmed=65
    )
    assert plan_collection(mixed, 10).doubtful == 0
    assert plan_collection(mixed, 0).doubtful <= 5


@pytest.mark.parametrize(("size", "wrong"), [(12, 0.1), (60, 0.05), (300, 0.0), (900, 0.08)])
def test_intervals_hold_at_every_look_of_a_review_that_stops_when_they_suffice(
    size: int, wrong: float
) -> None:
    """All selections at every look; what was proven is as pure as it was said to be."""
    reviews = 40
    held, pure = 0, 0
    for seed in range(reviews):
        order = np.random.default_rng(1_000 + seed).permutation(size)
        outcome = CollectionReview(labels(seed, size, wrong), order).run()
        held += outcome.held
        pure += outcome.proven >= 0.95
    assert held >= 0.95 * reviews
    assert pure >= 0.95 * reviews


def test_pure_labels_take_a_small_part_of_the_answers() -> None:
    order = np.random.default_rng(0).permutation(3_000)
    guided = CollectionReview(labels(0, 3_000, 0.01), order).run()
    assert guided.answers < 300
    assert guided.proven >= 0.95
