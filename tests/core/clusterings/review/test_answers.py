"""Answers: what is stored, what is moved, and what two people at once do."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sqlalchemy import select

from app.core.clusterings.operations import Exclude, Merge, Move, Split
from app.core.clusterings.review.answers import Answer, AnswerKind, kind_of, withdraw_answer
from app.core.clusterings.review.queries import Reviewed, read_lineage, reviewed
from app.core.platform.errors import InvalidRequest, NotFound, RevisionStale
from app.core.platform.tables import EXCLUDED, Clustering, Review
from tests.core.clustering_rows import TENANT, edit, places, save_features
from tests.core.clusterings.review.conftest import IMAGES, Reviewing


def rows(reviewing: Reviewing) -> list[Review]:
    with reviewing.runtime.db.read() as session:
        return list(session.scalars(select(Review).order_by(Review.image_id)))


def revision(reviewing: Reviewing) -> int:
    with reviewing.runtime.db.read() as session:
        return session.get_one(Clustering, reviewing.id).revision


def place(reviewing: Reviewing, image: int) -> int:
    return places(reviewing.runtime, reviewing.stored)[reviewing.stored.images[image]]


def withdraw(reviewing: Reviewing, image: int) -> None:
    with reviewing.runtime.db.write() as session:
        withdraw_answer(session, TENANT, reviewing.id, reviewing.stored.images[image])


def test_yes_and_no_move_nothing(reviewing: Reviewing) -> None:
    assert reviewing.say(0, 0, 0).stored == [reviewing.stored.images[0]]
    assert reviewing.say(1, 1, None).revision == 1
    yes, no = rows(reviewing)
    assert (yes.cluster_id, yes.belongs_to, yes.stratum) == (0, 0, None)
    assert (no.cluster_id, no.belongs_to) == (1, None)
    assert (place(reviewing, 0), place(reviewing, 1)) == (0, 1)


def test_which_moves_and_none_excludes(reviewing: Reviewing) -> None:
    assert reviewing.say(0, 0, 2).revision == 2
    assert reviewing.say(1, 1, EXCLUDED).revision == 3
    assert (place(reviewing, 0), place(reviewing, 1)) == (2, EXCLUDED)
    assert [row.belongs_to for row in rows(reviewing)] == [2, EXCLUDED]


def test_several_answers_are_one_transaction_with_one_revision_a_target(
    reviewing: Reviewing,
) -> None:
    ids = reviewing.stored.images
    found = reviewing.answer(
        Answer(image_id=ids[0], cluster_id=0, answer="which", belongs_to=1),
        Answer(image_id=ids[3], cluster_id=0, answer="which", belongs_to=1),
        Answer(image_id=ids[6], cluster_id=0, answer="which", belongs_to=2),
        Answer(image_id=ids[9], cluster_id=0, answer="yes", sample=True),
    )
    assert found.revision == 3
    assert rows(reviewing)[3].stratum is not None
    with pytest.raises(InvalidRequest, match="img_nothing is not in this clustering"):
        reviewing.answer(
            Answer(image_id=ids[12], cluster_id=0, answer="no"),
            Answer(image_id="img_nothing", cluster_id=0, answer="no"),
        )
    assert len(rows(reviewing)) == 4


def test_an_answer_that_is_sent_again_changes_nothing(reviewing: Reviewing) -> None:
    for _ in range(3):
        found = reviewing.say(0, 0, 2, sample=True)
        assert found.stored
        assert found.revision == 2
    (row,) = rows(reviewing)
    assert row.stratum is not None


def test_a_later_answer_replaces_the_earlier_one_and_stays_in_the_sample(
    reviewing: Reviewing,
) -> None:
    reviewing.say(0, 0, 0, sample=True)
    reviewing.say(0, 0, None)
    (row,) = rows(reviewing)
    assert row.belongs_to is None
    assert row.stratum is not None


def test_an_answer_about_an_image_that_was_moved_is_refused(reviewing: Reviewing) -> None:
    reviewing.say(0, 0, 2)
    late = reviewing.say(0, 0, 0)
    assert late.stored == []
    assert late.refused == [(reviewing.stored.images[0], 2)]
    assert reviewing.say(0, 0, 2).refused == []  # it is where this answer wants it
    edit(reviewing.runtime, reviewing.stored, Exclude(image_ids=[reviewing.stored.images[3]]))
    assert reviewing.say(3, 0, 0).refused == [(reviewing.stored.images[3], None)]


def test_bad_answers_are_refused(reviewing: Reviewing) -> None:
    with pytest.raises(InvalidRequest, match="there is no cluster 17"):
        reviewing.say(0, 0, 17)
    image = reviewing.stored.images[0]
    with pytest.raises(InvalidRequest, match="answer yes instead"):
        reviewing.answer(Answer(image_id=image, cluster_id=0, answer="which", belongs_to=0))
    twice = Answer(image_id=image, cluster_id=0, answer="yes")
    with pytest.raises(InvalidRequest, match=r"names the image .* twice"):
        reviewing.answer(twice, twice)
    with pytest.raises(RevisionStale):
        reviewing.answer(twice, revisions={7})
    assert rows(reviewing) == []


def test_withdrawing_an_answer_moves_the_image_back(reviewing: Reviewing) -> None:
    reviewing.say(0, 0, 2)
    reviewing.say(1, 1, EXCLUDED)
    reviewing.say(2, 2, 2)
    for image in (0, 1, 2):
        withdraw(reviewing, image)
    assert rows(reviewing) == []
    assert [place(reviewing, image) for image in (0, 1, 2)] == [0, 1, 2]
    with pytest.raises(NotFound, match="no answer about the image"):
        withdraw(reviewing, 0)


def test_withdrawing_leaves_an_image_where_someone_else_has_moved_it(reviewing: Reviewing) -> None:
    reviewing.say(0, 0, 2)
    image = reviewing.stored.images[0]
    edit(reviewing.runtime, reviewing.stored, Move(image_ids=[image], cluster_id=1))
    withdraw(reviewing, 0)
    assert place(reviewing, 0) == 1


def test_two_people_at_once_lose_no_answer(reviewing: Reviewing) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda image: reviewing.say(image, image % 3, (image + 1) % 3), range(24)))
        list(pool.map(lambda _: reviewing.say(60, 0, 1), range(4)))
    assert len(rows(reviewing)) == 25
    assert revision(reviewing) == 26


def test_reviewed_streams_what_people_said_with_merged_clusters_replaced(
    reviewing: Reviewing,
) -> None:
    ids = reviewing.stored.images
    reviewing.say(0, 0, 0)
    reviewing.say(1, 1, None)
    reviewing.say(2, 2, 0)
    reviewing.say(5, 2, EXCLUDED)
    edit(reviewing.runtime, reviewing.stored, Merge(cluster_ids=[0, 1], into=1))
    edit(reviewing.runtime, reviewing.stored, Merge(cluster_ids=[1, 3], into=3))
    with reviewing.runtime.db.read() as session:
        assert list(reviewed(session, reviewing.id)) == [
            Reviewed(ids[0], 3, 3),
            Reviewed(ids[1], 3, None),
            Reviewed(ids[2], 2, 3),
            Reviewed(ids[5], 2, EXCLUDED),
        ]
        lineage = read_lineage(session, reviewing.id)
    assert lineage.sources(3) == [3, 0, 1]


def test_the_sample_of_a_mixture_does_not_count_after_the_split(reviewing: Reviewing) -> None:
    random = np.random.default_rng(0)
    features = random.normal(size=(IMAGES, 4)).astype(np.float32)
    features[:, 0] += 20
    features[::6] += (-20, 20, 0, 0)  # half of cluster 0
    save_features(reviewing.runtime, features, list(range(IMAGES)))
    seen = [image for image in range(0, 120, 3) if image % 5]
    reviewing.say_all((image, 0, None if image % 6 else 0) for image in seen)
    before = reviewing.report().clusters[0]
    assert before.purity == pytest.approx(0.5, abs=0.1)
    edit(reviewing.runtime, reviewing.stored, Split(cluster_id=0))
    after = reviewing.report().clusters[0]
    assert after.sampled == 0
    assert after.lower is None
    assert after.reviewed == before.reviewed / 2  # those that stayed are still known


@pytest.mark.parametrize(
    ("said", "kind"), [(4, "yes"), (None, "no"), (7, "which"), (EXCLUDED, "none")]
)
def test_kinds(said: int | None, kind: AnswerKind) -> None:
    assert kind_of(4, said) == kind
    if kind == "which":
        assert Answer(image_id="i", cluster_id=4, answer="which", belongs_to=7).said == said
    else:
        assert Answer(image_id="i", cluster_id=4, answer=kind).said == said
