"""A training with constraints follows what is known of some images."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from temi.errors import InvalidConfig, TemiError
from temi.model import ClusterModel
from temi.neighbors.search import mine_neighbors
from temi.training.constraints import OUTSIDE, UNKNOWN, Constraints
from temi.training.trainer import TrainConfig, Trainer

Mixture = Callable[..., tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]]
Integers = npt.NDArray[np.int64]
COUNT, GROUPS = 240, 6


def trainer(
    features: npt.NDArray[np.float32], constraints: Constraints | None, n_clusters: int = GROUPS
) -> Trainer:
    config = TrainConfig(n_clusters=n_clusters, n_heads=2, steps=150, batch_size=64)
    neighbors = mine_neighbors(features, 20).ids
    return Trainer(features, neighbors, config, constraints=constraints, device="cpu")


def fit(
    features: npt.NDArray[np.float32], constraints: Constraints | None, n_clusters: int = GROUPS
) -> ClusterModel:
    run = trainer(features, constraints, n_clusters)
    run.run(run.total_steps)
    return run.finish()


def some(labels: Integers, each: int) -> Integers:
    """The labels of the first images of each group."""
    known = np.full(len(labels), UNKNOWN)
    known[: each * GROUPS] = labels[: each * GROUPS]
    return known


def test_labels_give_the_clusters_their_numbers(mixture: Mixture) -> None:
    features, groups = mixture(COUNT, n_groups=GROUPS)
    wanted = np.array([3, 5, 0, 4, 2, 1])[groups]

    found = fit(features, Constraints.of_labels(some(wanted, 2))).predict(features)

    assert (found == wanted).mean() > 0.97


def test_labels_correct_an_earlier_clustering(mixture: Mixture) -> None:
    features, groups = mixture(COUNT, n_groups=GROUPS)
    before = groups.copy()
    before[(groups == 1) & (np.arange(COUNT) % 4 > 0)] = 0  # most of group 1 is in cluster 0
    constraints = Constraints(labels=some(groups, 3), clusters=before)

    found = fit(features, constraints).predict(features)

    assert (before == groups).mean() < 0.9
    assert (found == groups).mean() > 0.97


def test_merged_clusters_stay_one_and_parts_stay_apart(mixture: Mixture) -> None:
    features, groups = mixture(COUNT, n_groups=GROUPS)
    merged = np.array([0, 0, 1, 2, 3, 4])[groups]
    nothing = np.full(COUNT, UNKNOWN)

    found = fit(features, Constraints(labels=nothing, clusters=merged), 5).predict(features)

    assert (found == merged).mean() > 0.97


def test_a_further_cluster_is_found_beside_the_earlier_ones(mixture: Mixture) -> None:
    features, groups = mixture(COUNT, n_groups=GROUPS)
    before = np.minimum(groups, GROUPS - 2)  # the last two groups were one
    nothing = np.full(COUNT, UNKNOWN)

    found = fit(features, Constraints(labels=nothing, clusters=before)).predict(features)

    kept = groups < GROUPS - 2
    assert (found[kept] == groups[kept]).mean() > 0.97
    assert set(np.unique(found[~kept])) == {GROUPS - 2, GROUPS - 1}
    assert all(len(np.unique(found[groups == last])) == 1 for last in (GROUPS - 2, GROUPS - 1))


def test_images_that_are_new_join_the_clusters(mixture: Mixture) -> None:
    features, groups = mixture(COUNT, n_groups=GROUPS)
    before = groups.copy()
    before[COUNT // 2 :] = UNKNOWN

    constraints = Constraints(labels=some(groups, 1), clusters=before)
    found = fit(features, constraints).predict(features)

    assert (found == groups).mean() > 0.97


def test_a_run_resumes_to_the_same_bits(mixture: Mixture) -> None:
    features, groups = mixture(COUNT, n_groups=GROUPS)
    constraints = Constraints(labels=some(groups, 2), clusters=groups)
    calm, disturbed, resumed = (trainer(features, constraints) for _ in range(3))
    calm.run(calm.total_steps)
    disturbed.run(70)

    resumed.load_state(disturbed.state())
    resumed.run(resumed.total_steps)

    first, second = calm.finish().tensors(), resumed.finish().tensors()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_probabilities_of_known_images_are_what_is_known() -> None:
    constraints = Constraints(
        labels=np.array([2, UNKNOWN, UNKNOWN, UNKNOWN, 0]),
        refused=np.array([[1, 0], [3, 0], [3, 1], [3, 2], [4, 1]]),
    )
    found = np.full((4, 3), 1 / 3, dtype=np.float32)

    constraints.allow(np.array([0, 1, 3, 4]), found)

    expected = np.array([[0, 0, 1], [0, 0.5, 0.5], [1 / 3] * 3, [1, 0, 0]])
    np.testing.assert_allclose(found, expected, 1e-6)


def test_the_rows_of_a_model_have_all_labels_and_none_outside() -> None:
    labels = np.array([UNKNOWN, OUTSIDE, 1, UNKNOWN, 0, UNKNOWN])

    rows = Constraints(labels=labels).with_labels(np.array([0, 1, 3]))

    assert rows.tolist() == [0, 2, 3, 4]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Constraints.of_labels([0, 1]), "labels must be whole numbers of shape"),
        (Constraints.of_labels([0.5] * 30), "labels must be whole numbers"),
        (Constraints.of_labels([GROUPS] * 30), "labels must be from -2 to 5, but one is 6"),
        (
            Constraints(labels=np.zeros(30, dtype=int), clusters=np.full(30, -2)),
            "clusters must be from -1 to 5",
        ),
        (
            Constraints(labels=np.zeros(30, dtype=int), refused=np.array([[30, 0]])),
            "refused must be from 0 to 29, but one is 30",
        ),
        (
            Constraints(labels=np.zeros(30, dtype=int), refused=np.array([1, 2])),
            "refused must have shape",
        ),
    ],
)
def test_wrong_constraints_are_refused(mixture: Mixture, wrong: Constraints, message: str) -> None:
    features, _ = mixture(30, n_groups=GROUPS)
    with pytest.raises(TemiError, match=message):
        trainer(features, wrong)


def test_one_head_cannot_learn(mixture: Mixture) -> None:
    features, groups = mixture(30, n_groups=GROUPS)
    config = TrainConfig(n_clusters=GROUPS, select="lowest_loss", steps=1)
    with pytest.raises(InvalidConfig, match="consensus"):
        Trainer(
            features,
            mine_neighbors(features, 5).ids,
            config,
            constraints=Constraints(labels=groups),
        )
