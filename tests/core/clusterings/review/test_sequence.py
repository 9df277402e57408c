"""The confidence sequence: it holds at every look at once."""

import numpy as np
import pytest
from scipy.stats import betabinom, hypergeom

from app.core.clusterings.review.sequence import wrong_in_collection


def failing(size: int, wrong: int, error: float) -> float:
    """The exact probability that the interval misses the number at any size of the sample."""
    paths, lost = {0: 1.0}, 0.0  # probability by the wrong ones that were drawn
    for drawn in range(size + 1):
        found = np.array(sorted(paths))
        low, high = wrong_in_collection(size, drawn, found, error)
        following: dict[int, float] = {}
        for k, misses in zip(found.tolist(), (low > wrong) | (high < wrong), strict=True):
            if misses:
                lost += paths[k]
            elif drawn < size:
                share = (wrong - k) / (size - drawn)
                following[k + 1] = following.get(k + 1, 0) + paths[k] * share
                following[k] = following.get(k, 0) + paths[k] * (1 - share)
        paths = {k: probability for k, probability in following.items() if probability}
    return lost


@pytest.mark.parametrize("size", [1, 2, 5, 20, 60])
def test_it_ever_fails_with_at_most_the_stated_probability(size: int) -> None:
    for wrong in {0, 1, size // 20, size // 10, size // 2, size}:
        if wrong <= size:
            assert failing(size, wrong, 0.05) <= 0.05, wrong
            assert failing(size, wrong, 0.2) <= 0.2, wrong


def test_it_is_the_set_of_numbers_that_a_slow_search_finds() -> None:
    for size, drawn, wrong in ((50, 10, 0), (50, 20, 3), (300, 40, 1), (30, 29, 2)):
        numbers = np.arange(size + 1)
        likely = hypergeom.pmf(wrong, size, numbers, drawn) > 0.05 * betabinom.pmf(
            wrong, drawn, 0.5, 30
        )
        low, high = wrong_in_collection(size, drawn, wrong, 0.05)
        assert (low, high) == (numbers[likely].min(), numbers[likely].max())


def test_nothing_is_known_before_the_sample_and_everything_after_all() -> None:
    assert tuple(map(float, wrong_in_collection(100, 0, 0, 0.05))) == (0, 100)
    assert tuple(map(float, wrong_in_collection(100, 100, 7, 0.05))) == (7, 7)
    assert tuple(map(float, wrong_in_collection(0, 0, 0, 0.05))) == (0, 0)


def test_a_few_dozen_right_answers_prove_95_percent_of_any_collection() -> None:
    drawn = np.arange(1, 200)
    for size in (1_000, 100_000, 1_000_000):
        proven = wrong_in_collection(size, drawn, 0, 0.05).high <= 0.05 * size
        assert drawn[proven].min() <= 75
