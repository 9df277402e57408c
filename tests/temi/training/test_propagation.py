"""Labels reach the images beside them over the graph of neighbors."""

import numpy as np
import pytest

from temi.training import propagation
from temi.training.constraints import OUTSIDE, UNKNOWN, Constraints
from temi.training.learning import FoundClusters
from temi.training.propagation import propagate

# Two chains of five images each.
PAIRS = np.array(
    [[1, -1], [0, 2], [1, 3], [2, 4], [3, -1], [6, -1], [5, 7], [6, 8], [7, 9], [8, -1]]
)
ALL = np.arange(10)


def found(clusters: list[int], weight: float = 1.0) -> FoundClusters:
    weights = np.full(len(clusters), weight, dtype=np.float32)
    return FoundClusters(clusters=np.array(clusters), weights=weights, agreement=1.0)


def labels(**known: int) -> Constraints:
    values = np.full(10, UNKNOWN)
    for name, value in known.items():
        values[int(name[1:])] = value
    return Constraints(labels=values)


def test_a_label_reaches_its_whole_component() -> None:
    probabilities = propagate(PAIRS, labels(_0=1, _9=0), found([0, 1] * 5), 2, ALL)

    assert probabilities.argmax(axis=1).tolist() == [1] * 5 + [0] * 5
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)
    assert probabilities[0].tolist() == [0, 1]  # what is known is certain


def test_evidence_falls_with_the_distance() -> None:
    probabilities = propagate(PAIRS, labels(_0=0, _4=1), found([2] * 10), 3, ALL)

    assert np.all(np.diff(probabilities[1:4, 0]) < 0)
    assert np.all(np.diff(probabilities[1:4, 1]) > 0)


def test_without_labels_the_clusters_stay() -> None:
    clusters = [0] * 5 + [1] * 5

    probabilities = propagate(PAIRS, labels(), found(clusters), 2, ALL)

    assert probabilities.argmax(axis=1).tolist() == clusters


def test_a_refused_cluster_is_less_likely_beside_the_image() -> None:
    plain = labels(_0=0, _5=1)
    refused = Constraints(labels=plain.labels, refused=np.array([[2, 0]]))
    before = propagate(PAIRS, plain, found([0] * 5 + [1] * 5), 3, ALL)

    after = propagate(PAIRS, refused, found([0] * 5 + [1] * 5), 3, ALL)

    assert before[2, 0] > 0.5
    assert after[2].tolist() == [0, 0.5, 0.5]  # no evidence is left, and two clusters


def test_an_image_outside_of_all_clusters_says_nothing() -> None:
    clusters = [0, 0, 1, 0, 0, 1, 1, 1, 1, 1]
    outside = propagate(PAIRS, labels(_2=OUTSIDE), found(clusters), 2, ALL)
    inside = propagate(PAIRS, labels(), found(clusters), 2, ALL)

    assert outside[1, 1] < inside[1, 1]


def test_blocks_of_clusters_do_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    given = (PAIRS, labels(_0=4, _7=2), found([0, 1, 2, 3, 4] * 2), 5)
    whole = propagate(*given, ALL)
    monkeypatch.setattr(propagation, "_COLUMNS", 2)

    np.testing.assert_array_equal(propagate(*given, ALL), whole)
    np.testing.assert_array_equal(propagate(*given, np.array([1, 8])), whole[[1, 8]])
