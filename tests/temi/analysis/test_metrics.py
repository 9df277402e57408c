import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from temi.analysis.metrics import MAJORITY, ONE_TO_ONE, evaluate, number_labels
from temi.errors import TemiError


def test_perfect_up_to_renumbering() -> None:
    result = evaluate(["cat", "cat", "dog", "dog"], np.array([7, 7, 2, 2]))

    assert (result.accuracy, result.nmi, result.ami, result.ari) == (1.0, 1.0, 1.0, 1.0)
    assert result.matching == ONE_TO_ONE


def test_by_hand() -> None:
    """Clusters {a a b} and {b b a c}: matched to a and b, 2 + 2 of 7 right."""
    labels = ["a", "a", "b", "b", "b", "a", "c"]

    result = evaluate(labels, np.array([0, 0, 0, 1, 1, 1, 1]))

    assert result.accuracy == pytest.approx(4 / 7)


def test_a_cluster_is_matched_to_one_class() -> None:
    assert evaluate(["a", "b"], np.array([0, 0])).accuracy == 0.5


def test_clusters_left_over_count_for_their_majority() -> None:
    """Class a is split in two: both halves count, and ``matching`` tells it."""
    result = evaluate(["a", "a", "a", "b", "b"], np.array([0, 0, 1, 2, 2]))

    assert result.accuracy == 1.0
    assert result.matching == MAJORITY
    assert (result.n_clusters, result.n_classes) == (3, 2)


def test_unlabeled_images_are_left_out_and_counted() -> None:
    result = evaluate(["a", None, "b", float("nan"), None], np.array([0, 1, 1, 0, 0]))

    assert (result.n_labeled, result.n_unlabeled) == (2, 3)
    assert result.accuracy == 1.0


def test_no_labels_at_all() -> None:
    result = evaluate([None, None], np.array([0, 1]))

    assert result.accuracy is None
    assert result.ari is None
    assert (result.n_labeled, result.n_unlabeled) == (0, 2)


def test_labels_of_mixed_types() -> None:
    assert evaluate([1, "1", (1,), 2.5], np.array([0, 1, 2, 3])).accuracy == 1.0


def test_labels_are_numbered_as_they_appear() -> None:
    codes, classes = number_labels(["b", None, (1,), "b", float("nan"), 0])

    assert codes.tolist() == [0, -1, 1, 0, -1, 2]
    assert classes == ("b", (1,), 0)


def test_invalid_labels_are_refused() -> None:
    with pytest.raises(TemiError, match="2 labels for 1"):
        evaluate(["a", "b"], np.array([0]))
    with pytest.raises(TemiError, match="hashable"):
        evaluate([["a"]], np.array([0]))


def test_as_dict_is_plain() -> None:
    values = evaluate(["a", "b", None], np.array([0, 0, 1])).as_dict()

    assert values["n_unlabeled"] == 1
    assert all(v is None or type(v) in (int, float, str) for v in values.values())


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=60)


@settings(max_examples=50, deadline=None)
@given(pairs, st.permutations(range(5)))
def test_properties(both: list[tuple[int, int]], renumbering: list[int]) -> None:
    labels = [label for label, _ in both]
    predicted = np.array([cluster for _, cluster in both])

    result = evaluate(labels, predicted)
    renumbered = evaluate(labels, np.array(renumbering)[predicted])

    assert result.accuracy is not None
    assert 0 < result.accuracy <= 1
    assert renumbered.accuracy == result.accuracy
    assert result.nmi == pytest.approx(normalized_mutual_info_score(labels, predicted))
    assert result.ari == pytest.approx(adjusted_rand_score(labels, predicted))
