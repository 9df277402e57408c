"""Gathering against a slow average linkage, written straight from its definition."""

import numpy as np
import numpy.typing as npt
import pytest

from temi.errors import TemiError
from temi.gathering import (
    center_distances,
    center_of,
    gather,
    gathering_radius,
    mean_distance,
)
from temi.novelty import exact_units, fit_novelty

Rows = npt.NDArray[np.float64]


def _around(direction: int, count: int, noise: float, seed: int) -> Rows:
    rows = noise * np.random.default_rng(seed).normal(size=(count, 16))
    rows[:, direction] += 1
    return rows


def _slowly(features: Rows, radius: float) -> set[frozenset[int]]:
    """Joins the two sets with the smallest mean distance until it is above the radius."""
    units = exact_units(features)
    distances = 1 - units @ units.T
    sets = [[row] for row in range(len(features))]
    while len(sets) > 1:
        pairs = [
            (float(distances[np.ix_(sets[a], sets[b])].mean()), a, b)
            for a in range(len(sets))
            for b in range(a + 1, len(sets))
        ]
        nearest, a, b = min(pairs)
        if nearest > radius:
            break
        sets[a] += sets.pop(b)
    return {frozenset(rows) for rows in sets if len(rows) > 1}


@pytest.mark.parametrize("radius", [0.05, 0.2, 0.5, 0.9])
def test_groups_are_those_of_average_linkage(radius: float) -> None:
    features = np.concatenate([_around(at, 8, 0.2, seed=at) for at in range(3)])
    found = {frozenset(group.rows.tolist()) for group in gather(features, radius, min_images=2)}
    assert found == _slowly(features, radius)


def test_few_similar_images_are_no_group() -> None:
    features = np.concatenate(
        [_around(0, 9, 0.05, 1), _around(1, 6, 0.05, 2), _around(2, 4, 0.05, 3)]
    )
    groups = gather(features, 0.3)
    assert [sorted(group.rows.tolist()) for group in groups] == [[*range(9)], [*range(9, 15)]]


def test_the_order_of_the_images_does_not_matter() -> None:
    features = np.concatenate([_around(at, 12, 0.3, seed=at) for at in range(4)])
    order = np.random.default_rng(0).permutation(len(features))
    plain = [set(group.rows.tolist()) for group in gather(features, 0.6)]
    mixed = [set(order[group.rows].tolist()) for group in gather(features[order], 0.6)]
    assert sorted(map(sorted, plain)) == sorted(map(sorted, mixed))


def test_a_group_has_its_most_typical_image_first_and_its_tightness() -> None:
    features = np.concatenate([_around(0, 7, 0.1, 1), _around(0, 1, 0.25, 2)])
    (group,) = gather(features, 0.9)
    assert group.rows[-1] == 7
    units = exact_units(features)
    cosines = (units @ units.T)[np.triu_indices(8, 1)]
    assert group.tightness == pytest.approx(cosines.mean(), abs=1e-6)
    distances = center_distances(features)
    assert np.argmin(distances) == group.rows[0]


def test_the_distance_of_two_groups_is_that_of_their_images() -> None:
    left, right = _around(0, 7, 0.4, 1), _around(1, 5, 0.4, 2)
    pairs = 1 - exact_units(left) @ exact_units(right).T
    assert mean_distance(center_of(left), center_of(right)) == pytest.approx(pairs.mean(), abs=1e-8)


def test_the_radius_is_where_an_image_is_novel() -> None:
    features = np.random.default_rng(3).normal(size=(300, 16))
    detector = fit_novelty(features)
    others = np.random.default_rng(4).normal(size=(3000, 16))
    far = detector.score(others) > gathering_radius(detector)
    assert far.tolist() == (detector.novelty(others) > 0.99).tolist()
    assert detector.distance_at(0.5) < gathering_radius(detector) < detector.distance_at(1.0)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_images_for_a_group(count: int) -> None:
    assert gather(np.ones((count, 3)), 1.0) == []


def test_features_must_be_rows() -> None:
    with pytest.raises(TemiError, match="shape"):
        gather(np.ones(3), 1.0)
