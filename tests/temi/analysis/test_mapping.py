import numpy as np
import pytest

from temi.analysis.mapping import ITERATIONS, fitting_perplexity, map_rows, neighbors_for
from temi.errors import InvalidConfig, TemiError
from temi.neighbors.search import mine_neighbors

RNG = np.random.default_rng(0)
GROUPS = np.arange(120) % 4
FEATURES = (2 * RNG.normal(size=(4, 32))[GROUPS] + RNG.normal(size=(120, 32))).astype(np.float32)


def test_groups_stay_together() -> None:
    seen: list[tuple[int, int]] = []
    neighbors = mine_neighbors(FEATURES, neighbors_for(10, 120)).ids

    points = map_rows(FEATURES, neighbors, perplexity=10, progress=lambda *step: seen.append(step))

    assert points.shape == (120, 2)
    assert points.dtype == np.float32
    assert np.abs(points).max() == 1.0
    distances = ((points[:, None] - points[None]) ** 2).sum(-1)
    np.fill_diagonal(distances, np.inf)
    nearest = np.argsort(distances, axis=1)[:, :5]
    assert (GROUPS[nearest] == GROUPS[:, None]).mean() > 0.95
    assert seen == sorted(seen)
    assert seen[-1] == (ITERATIONS, ITERATIONS)


def test_the_same_seed_gives_the_same_map() -> None:
    features, neighbors = FEATURES[:40], mine_neighbors(FEATURES[:40], 30).ids
    one, other = (map_rows(features, neighbors, perplexity=10, seed=3) for _ in range(2))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("n", [3, 4, 7])
def test_very_small_sets(n: int) -> None:
    perplexity = fitting_perplexity(30, n)
    neighbors = mine_neighbors(FEATURES[:n], neighbors_for(perplexity, n)).ids
    points = map_rows(FEATURES[:n], neighbors)
    assert np.isfinite(points).all()
    assert len(np.unique(points, axis=0)) == n


def test_equal_rows_have_equal_coordinates() -> None:
    features = np.ones((6, 4), dtype=np.float32)
    points = map_rows(features, mine_neighbors(features, 5).ids)
    np.testing.assert_array_equal(points, 0)


def test_the_perplexity_is_reduced_for_small_sets() -> None:
    assert fitting_perplexity(30, 1000) == 30
    assert fitting_perplexity(30, 31) == 10
    assert fitting_perplexity(30, 3) == 1.5
    assert neighbors_for(30, 1000) == 90
    assert neighbors_for(1.5, 3) == 2
    with pytest.raises(TemiError, match="at least 3"):
        fitting_perplexity(30, 2)
    with pytest.raises(InvalidConfig, match="above 1"):
        fitting_perplexity(1, 10)
