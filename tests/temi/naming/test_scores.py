"""Words that distinguish groups, and names of several sources."""

import numpy as np
import pytest

from temi.naming.scores import combine, distinctive, softmax, text_strengths


def test_words_that_neighbors_share_count_less() -> None:
    strength = np.array([[0.8, 0.5, 0.1], [0.8, 0.0, 0.3], [0.0, 0.0, 0.0]])
    near = [np.array([1]), np.array([0]), np.array([], dtype=np.int64)]
    scores = distinctive(strength, [0, 1, 2], near)
    assert scores[0].tolist() == pytest.approx([0.0, 0.5, 0.0])
    assert scores[1].tolist() == pytest.approx([0.0, 0.0, 0.3 * 0.2 / 0.4])
    assert scores[2].tolist() == [0.0, 0.0, 0.0]
    alone = distinctive(strength, [1], [np.array([], dtype=np.int64)])
    assert alone[0].tolist() == pytest.approx(strength[1].tolist())
    mixed = distinctive(strength, [0], [np.array([1, 2])])
    assert mixed[0, 0] == pytest.approx(0.8 * (0.8 - 0.4) / (0.8 + 0.4))


def test_texts_are_compared_by_their_direction() -> None:
    centers = np.array([[3.0, 0.0], [0.0, 0.1]])
    texts = np.array([[1.0, 0.0], [0.0, 5.0], [-1.0, 0.0]])
    found = text_strengths(centers, texts)
    assert found.sum(axis=1).tolist() == pytest.approx([1, 1])
    assert found.argmax(axis=1).tolist() == [0, 1]
    assert softmax(np.array([[1e4, 0.0]])).tolist() == [[1.0, 0.0]]


def test_names_of_several_sources_are_one() -> None:
    scores = {
        "classifier": {"Dog": 0.5, "pug": 0.2},
        "files": {"dog": 0.5, "red car": 0.4, "car": 0.4, "red": 0.39, "none": 0.0},
    }
    first, second, third = combine(scores, 3)
    assert (first.name, first.score, first.sources) == ("Dog", 0.75, ("classifier", "files"))
    assert (second.name, second.score, second.sources) == ("red car", 0.4, ("files",))
    assert third.name == "pug"  # car and red only repeat words
    assert [one.name for one in combine(scores, 10)] == ["Dog", "red car", "pug"]
    assert combine({}, 3) == []
