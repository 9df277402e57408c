"""Finding the number of clusters."""

import json

import numpy as np
import numpy.typing as npt
import pytest
import torch

from temi.analysis import cluster_count
from temi.analysis.cluster_count import CountPoint, estimate_cluster_count, suggest_counts
from temi.errors import TemiError


def groups(
    centers: npt.NDArray[np.floating], of_each: int = 40, noise: float = 0.4
) -> npt.NDArray[np.float32]:
    """Rows around each center."""
    rows = np.repeat(centers, of_each, axis=0)
    return (rows + np.random.default_rng(1).normal(0, noise, rows.shape)).astype(np.float32)


def random_centers(n: int, dim: int = 24) -> npt.NDArray[np.floating]:
    return 4 * np.random.default_rng(n).standard_normal((n, dim))


@pytest.mark.parametrize("of_each", [4, 6])
def test_two_groups_of_few_images(of_each: int) -> None:
    assert estimate_cluster_count(groups(random_centers(2), of_each)).suggested == (2,)


@pytest.mark.parametrize("n", [3, 6, 11])
def test_separate_groups_are_counted(n: int) -> None:
    estimate = estimate_cluster_count(groups(random_centers(n)))
    assert estimate.best == estimate.suggested[0] == n


def test_groups_within_groups_are_both_plausible() -> None:
    coarse = np.repeat(3 * random_centers(4), 3, axis=0)
    fine = coarse + 1.2 * np.random.default_rng(2).standard_normal(coarse.shape)
    estimate = estimate_cluster_count(groups(fine))
    assert set(estimate.suggested) >= {4, 12}


def test_the_result_does_not_depend_on_the_number_of_threads() -> None:
    features = groups(random_centers(5), noise=3)
    found = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 3):
            torch.set_num_threads(threads)
            found.append(estimate_cluster_count(features, counts=[3, 5, 8]))
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1]


def test_large_sets_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_count, "SAMPLE", 120)
    estimate = estimate_cluster_count(groups(random_centers(4)), seed=3)
    assert estimate.best == 4
    assert estimate.points[-1].n_clusters == 12  # ten images of the sample in each


def test_given_numbers_are_compared_if_there_are_images_enough() -> None:
    steps: list[tuple[int, int]] = []
    estimate = estimate_cluster_count(
        groups(random_centers(4)),  # 160 images
        counts=[8, 4, 4, 100],
        progress=lambda done, total: steps.append((done, total)),
    )
    assert [point.n_clusters for point in estimate.points] == [4, 8]
    assert steps == [(1, 2), (2, 2)]
    assert json.loads(json.dumps(estimate.as_dict()))["suggested"] == [4]


def test_equal_images_have_no_groups() -> None:
    estimate = estimate_cluster_count(np.ones((50, 6), dtype=np.float32))
    assert estimate.suggested == ()
    assert estimate.best == 2


def test_few_images() -> None:
    assert estimate_cluster_count(random_centers(3).astype(np.float32)).best == 2
    with pytest.raises(TemiError, match="two images"):
        estimate_cluster_count(np.ones((1, 4), dtype=np.float32))


def point(n_clusters: int, stability: float, modularity: float = 1.0) -> CountPoint:
    return CountPoint(n_clusters=n_clusters, stability=stability, modularity=modularity)


def test_suggestions_are_peaks_apart_from_each_other() -> None:
    stabilities = {2: 0.5, 3: 0.9, 4: 0.8, 5: 0.85, 6: 0.7, 9: 0.6, 12: 0.75, 20: 0.3, 40: 0.4}
    points = [point(n, stability) for n, stability in stabilities.items()]
    assert suggest_counts(points) == (3, 5, 12)
    assert suggest_counts([]) == ()
    assert suggest_counts([point(2, 0.9, modularity=-0.1)]) == ()
    # joining different groups into two is stable, but divides few edges less than four do
    assert suggest_counts([point(2, 1.0, 0.45), point(3, 0.7, 0.6), point(4, 0.95, 0.7)])[0] == 4
