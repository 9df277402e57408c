"""What people said about a clustering, as it is at a revision."""

import time

import numpy as np
import pytest

from app.core.clusterings.constraints import (
    NOTHING,
    ClusteringConstraints,
    collect_constraints,
    has_answers,
    kept_clusters,
)
from app.core.clusterings.operations import Exclude, Merge, Move, Redo, Rename, Split, Undo
from app.core.clusterings.review.answers import Answer, store_answers, withdraw_answer
from app.core.clusterings.revisions import open_revision
from app.core.platform.tables import EXCLUDED, Clustering, Review
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, append, edit, save_features, store

PLACES = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2]
LATER = time.time() + 1e6


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    return store(any_runtime, PLACES)


def collect(
    runtime: Runtime, stored: Stored, revision: int | None = None, until: float = LATER
) -> ClusteringConstraints:
    with runtime.db.read() as session:
        view = open_revision(session, session.get_one(Clustering, stored.clustering_id), revision)
    return collect_constraints(runtime.db, view, stored.images, until)


def review(runtime: Runtime, stored: Stored, position: int, asked: int, said: int | None) -> None:
    with runtime.db.write() as session:
        session.merge(
            Review(
                clustering_id=stored.clustering_id,
                image_id=stored.images[position],
                cluster_id=asked,
                belongs_to=said,
            )
        )


def said(found: ClusteringConstraints) -> dict[int, int]:
    return {row: int(found.said[row]) for row in np.flatnonzero(found.said != NOTHING).tolist()}


def test_nothing_was_said(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Rename(cluster_id=0, label="cats"))

    found = collect(any_runtime, stored)

    assert found.current.tolist() == PLACES
    assert said(found) == {}
    assert set(found.counts.values()) == {0}
    with any_runtime.db.read() as session:
        assert not has_answers(session, stored.clustering_id)


def test_moves_and_exclusions_in_effect_are_labels(any_runtime: Runtime, stored: Stored) -> None:
    images = stored.images
    edit(any_runtime, stored, Move(image_ids=images[:2], cluster_id=1))
    edit(any_runtime, stored, Exclude(image_ids=[images[4]]))
    edit(any_runtime, stored, Exclude(image_ids=[images[5]]))
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Redo())

    found = collect(any_runtime, stored)

    assert said(found) == {0: 1, 1: 1, 4: EXCLUDED}
    assert (found.counts["moved"], found.counts["excluded"]) == (2, 1)
    assert said(collect(any_runtime, stored, revision=2)) == {0: 1, 1: 1}
    with any_runtime.db.read() as session:
        assert has_answers(session, stored.clustering_id)


def test_labels_follow_a_merge(any_runtime: Runtime, stored: Stored) -> None:
    review(any_runtime, stored, 3, 0, 0)
    review(any_runtime, stored, 4, 1, 0)  # said, but not moved
    edit(any_runtime, stored, Move(image_ids=[stored.images[9]], cluster_id=0))
    edit(any_runtime, stored, Merge(cluster_ids=[0, 2], into=2, label=None))

    found = collect(any_runtime, stored)

    assert said(found) == {3: 2, 4: 2, 9: 2}
    assert found.counts["merges"] == 1
    with any_runtime.db.read() as session:
        clustering = session.get_one(Clustering, stored.clustering_id)
        assert kept_clusters(session, clustering) == [1, 2]


def test_the_latest_word_counts(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Move(image_ids=stored.images[:2], cluster_id=1))
    review(any_runtime, stored, 0, 1, 2)
    review(any_runtime, stored, 1, 1, None)
    review(any_runtime, stored, 2, 0, 0)
    edit(any_runtime, stored, Move(image_ids=[stored.images[2]], cluster_id=2))

    found = collect(any_runtime, stored)

    assert said(found) == {0: 2, 2: 2}
    assert found.refused.tolist() == [[1, 1]]
    assert found.counts["refused"] == 1


def test_a_refusal_ends_with_a_merge_and_goes_on_in_parts(
    any_runtime: Runtime, stored: Stored
) -> None:
    save_features(any_runtime, _two_groups(), list(range(len(PLACES))))
    review(any_runtime, stored, 8, 2, None)
    review(any_runtime, stored, 4, 0, None)
    review(any_runtime, stored, 5, 1, None)
    edit(any_runtime, stored, Split(cluster_id=0, parts=2, seed=0))
    edit(any_runtime, stored, Merge(cluster_ids=[1, 2], into=1, label=None))

    found = collect(any_runtime, stored)

    assert found.refused.tolist() == [[4, 0], [4, 3]]


def test_parts_of_a_split_stay_apart(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, _two_groups(), list(range(len(PLACES))))
    review(any_runtime, stored, 3, 0, 0)
    edit(any_runtime, stored, Split(cluster_id=0, parts=2, seed=0))

    found = collect(any_runtime, stored)

    moved = np.flatnonzero(found.current == 3)
    assert len(moved) == 2
    assert found.apart.tolist() == [[0, 3]]
    assert found.counts["splits"] == 1
    assert said(found) == {3: int(found.current[3])}
    separated = np.flatnonzero(found.separated != NOTHING).tolist()
    assert separated == [row for row in moved.tolist() if row != 3]
    edit(any_runtime, stored, Undo())
    assert collect(any_runtime, stored).apart.tolist() == []


def test_later_reviews_and_new_images_say_nothing(any_runtime: Runtime, stored: Stored) -> None:
    review(any_runtime, stored, 0, 0, 0)

    assert said(collect(any_runtime, stored, until=0.0)) == {}
    grown = append(any_runtime, stored, 1)
    assert collect(any_runtime, grown).current.tolist() == [*PLACES, NOTHING]


def _two_groups() -> "np.ndarray[tuple[int, int], np.dtype[np.float32]]":
    features = np.zeros((len(PLACES), 4), dtype=np.float32)
    features[:, 0] = 1
    features[:, 1] = [0, 0.1, 5, 5.1, 1, 1, 1, 1, 2, 2]
    return features


def test_a_withdrawn_answer_says_nothing(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Move(image_ids=[stored.images[1]], cluster_id=2))
    for position, asked in ((0, 0), (1, 2)):
        answer = Answer(
            image_id=stored.images[position], cluster_id=asked, answer="which", belongs_to=1
        )
        with any_runtime.db.write() as session:
            store_answers(session, TENANT, stored.clustering_id, [answer])
    assert said(collect(any_runtime, stored)) == {0: 1, 1: 1}

    for position in (0, 1):
        with any_runtime.db.write() as session:
            withdraw_answer(session, TENANT, stored.clustering_id, stored.images[position])

    found = collect(any_runtime, stored)
    assert found.current.tolist() == [0, 2, *PLACES[2:]]
    assert said(found) == {1: 2}  # the move before the question
