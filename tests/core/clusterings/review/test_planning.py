"""Plans: the fewest answers that are expected to prove the purity."""

import pytest

from app.core.clusterings.review.planning import (
    PILOT,
    Plan,
    doubt_scale,
    expected_purity,
    first_sample,
    plan_clusters,
)
from app.core.clusterings.review.purity import Band, purity_of


def plan(*bands: Band) -> Plan:
    return plan_clusters([bands])[0]


@pytest.mark.parametrize(("size", "sampled"), [(10, 10), (76, 45), (500, 67), (20_000, 72)])
def test_the_first_sample_proves_the_purity_if_no_answer_is_no(size: int, sampled: int) -> None:
    assert first_sample([Band(unreviewed=size)], 0.95, 0.95) == sampled
    proven = purity_of([Band(right=sampled, unreviewed=size - sampled, sampled=sampled)])
    assert proven is not None
    assert proven.reaches(0.95)
    less = purity_of([Band(right=sampled - 1, unreviewed=size - sampled + 1, sampled=sampled - 1)])
    assert less is not None
    assert not less.reaches(0.95)


def test_nothing_is_left_of_a_cluster_that_is_pure_enough_or_empty() -> None:
    done, empty = plan_clusters([[Band(right=72, unreviewed=4_928, sampled=72)], [Band()]])
    assert (done.answers, done.sample, done.bands) == (0, 0, 0)
    assert empty.answers == 0


def test_a_cluster_begins_with_a_small_random_sample() -> None:
    found = plan(Band(unreviewed=100, doubt=0.9), Band(unreviewed=400, doubt=0.1))
    assert (found.sample, found.bands) == (PILOT, 0)
    assert found.answers > PILOT
    assert plan(Band(unreviewed=5, doubt=0.5)).sample == 5


def test_the_least_sure_images_are_reviewed_where_the_wrong_ones_are() -> None:
    doubtful = Band(right=5, unreviewed=90, sampled=10, sampled_wrong=5, doubt=0.5)
    sure = Band(right=70, unreviewed=900, sampled=70, doubt=0.05)
    found = plan(doubtful, sure)
    assert found.bands == 1
    assert 90 <= found.answers < 200
    assert found.images == pytest.approx(5 + 70 + 90 + 900 - 45, abs=5)  # without the wrong ones


def test_a_mixed_cluster_takes_about_as_many_answers_as_images() -> None:
    found = plan(Band(right=10, wrong=10, unreviewed=480, sampled=20, sampled_wrong=10, doubt=0.2))
    assert found.answers > 460
    assert found.gain < 1


def test_answers_correct_what_the_model_expects() -> None:
    unseen = Band(unreviewed=100, doubt=0.2)
    better = Band(right=200, sampled=200, doubt=0.2)
    worse = Band(right=120, sampled=200, sampled_wrong=80, doubt=0.2)
    assert doubt_scale([unseen]) == 1
    assert doubt_scale([unseen, better]) < 0.1
    assert doubt_scale([unseen, worse]) > 1.8
    assert expected_purity([unseen], 1.0) == pytest.approx(0.8)
    assert expected_purity([unseen], 0.5) == pytest.approx(0.9)
    assert expected_purity([Band()], 1.0) is None
