"""Purity: exact where everything was seen, and intervals that hold what they state."""

import numpy as np
import pytest
from scipy.stats import hypergeom

from app.core.clusterings.review.purity import Band, evidence, purity_of, wrong_bounds


def test_nothing_is_known_without_answers() -> None:
    assert purity_of([]) is None
    assert purity_of([Band()]) is None
    assert purity_of([Band(unreviewed=10)]) is None
    assert purity_of([Band(unreviewed=10, right=3)]) is None  # chosen images tell nothing of others


def test_a_cluster_that_was_seen_completely_is_known_exactly() -> None:
    found = purity_of([Band(right=9, wrong=1, sampled=10, sampled_wrong=1)])
    assert found is not None
    assert tuple(found) == pytest.approx((0.9, 0.9, 0.9))


def test_images_that_were_moved_away_improve_the_purity_of_the_rest() -> None:
    still_there = purity_of([Band(right=40, wrong=10, sampled=50, sampled_wrong=10)])
    moved = purity_of([Band(right=40, sampled=50, sampled_wrong=10)])
    assert still_there is not None
    assert moved is not None
    assert still_there.estimate == pytest.approx(0.8)
    assert moved.estimate == 1


def test_the_bound_without_a_wrong_answer_is_the_exact_one_of_a_finite_cluster() -> None:
    for size in (40, 76, 150, 500, 2_000):
        for sampled in (20, 30):
            _, high = wrong_bounds(size - sampled, sampled, 0, 0.95)
            wrong = np.arange(size)
            exact = wrong[hypergeom.cdf(0, size, wrong, sampled) > 0.025].max()
            assert exact - 1 <= high <= exact + 2, (size, sampled)


def test_bounds_agree_with_clopper_and_pearson_for_a_large_cluster() -> None:
    low, high = wrong_bounds(10**7, 100, 5, 0.95)
    assert low / 10**7 == pytest.approx(0.01643, abs=1e-4)
    assert high / 10**7 == pytest.approx(0.11284, abs=1e-4)


def test_a_proportional_sample_counts_in_full_and_another_less() -> None:
    even = [Band(unreviewed=100, sampled=10), Band(unreviewed=300, sampled=30, sampled_wrong=3)]
    assert tuple(evidence(even)) == pytest.approx((400, 40, 3))
    uneven = [Band(unreviewed=100, sampled=30), Band(unreviewed=300, sampled=10, sampled_wrong=1)]
    found = evidence(uneven)
    assert found.sampled < 20
    assert found.wrong / found.sampled == pytest.approx(0.075)


def test_a_band_without_a_sample_is_joined_with_its_neighbor() -> None:
    bands = [Band(unreviewed=5), Band(unreviewed=50, sampled=10), Band(unreviewed=5)]
    assert tuple(evidence(bands)) == pytest.approx((60, 10, 0))
    closed = [Band(right=7, sampled=7, sampled_wrong=7), Band(unreviewed=50, sampled=10)]
    assert tuple(evidence(closed)) == pytest.approx((50, 10, 0))  # nothing is left in the first


def test_wrong_images_that_were_chosen_and_found_are_not_expected_any_more() -> None:
    sample = Band(unreviewed=100, right=16, sampled=20, sampled_wrong=4)
    before = purity_of([sample])
    after = purity_of(
        [Band(unreviewed=60, right=36, sampled=20, sampled_wrong=4, chosen=40, chosen_wrong=20)]
    )
    assert before is not None
    assert after is not None
    assert before.upper < 1
    assert after.upper == 1  # perhaps all were found
    assert after.lower > before.lower


@pytest.mark.parametrize("purity", [0.5, 0.8, 0.95, 0.99, 1.0])
@pytest.mark.parametrize(("size", "sampled"), [(60, 20), (400, 50), (5_000, 72)])
def test_the_interval_holds_the_purity_at_its_stated_rate(
    purity: float, size: int, sampled: int
) -> None:
    """Wrong images are mostly in the less sure half, as they are in practice."""
    random = np.random.default_rng(0)
    wrong = round((1 - purity) * size)
    halves = np.arange(size) < size // 2  # the less sure half
    held, trials = 0, 400
    for _ in range(trials):
        weights = np.where(halves, 3.0, 1.0)
        bad = np.zeros(size, bool)
        bad[random.choice(size, wrong, replace=False, p=weights / weights.sum())] = True
        bands = []
        for half in (halves, ~halves):
            seen = random.choice(np.flatnonzero(half), sampled // 2, replace=False)
            found = int(bad[seen].sum())
            bands.append(
                Band(
                    right=len(seen) - found,
                    wrong=found,
                    unreviewed=int(half.sum()) - len(seen),
                    sampled=len(seen),
                    sampled_wrong=found,
                )
            )
        interval = purity_of(bands)
        assert interval is not None
        held += interval.lower - 1e-9 <= 1 - wrong / size <= interval.upper + 1e-9
    assert held >= 0.95 * trials
