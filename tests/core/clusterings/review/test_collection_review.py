"""The review of a clustering as a whole: report, queue and what can be exported."""

from app.core.clusterings.operations import Move
from app.core.clusterings.review.collection_report import proven_probability
from app.core.clusterings.review.queue import Question
from app.core.clusterings.rows import get_clustering
from app.core.platform.tables import EXCLUDED
from tests.core.clustering_rows import TENANT, edit
from tests.core.clusterings.review.conftest import Reviewing


def lowest(reviewing: Reviewing, min_purity: float = 0.95) -> float | None:
    with reviewing.runtime.db.read() as session:
        clustering = get_clustering(session, TENANT, reviewing.id)
        return proven_probability(session, clustering, min_purity)


def say(reviewing: Reviewing, questions: list[Question], said: int | None = None) -> None:
    """Right, or the same other answer for all."""
    for sample in (True, False):
        facts = [
            (
                reviewing.stored.images.index(one.image_id),
                one.cluster_id,
                one.cluster_id if said is None else said,
            )
            for one in questions
            if one.sample is sample
        ]
        if facts:
            reviewing.say_all(facts, sample)


def test_before_any_answer_it_believes_the_model(reviewing: Reviewing) -> None:
    report = reviewing.report(proof="collection")
    assert report.proof == "collection"
    assert (report.collection.basis, report.collection.meets) == ("probabilities", False)
    assert report.collection.lower is None
    assert report.collection.answers_left == report.forecast.answers > 0
    assert report.finished_images == 0
    assert lowest(reviewing) is None


def test_random_photos_prove_the_labels_together(reviewing: Reviewing) -> None:
    asked = 0
    while questions := reviewing.queue(limit=10, proof="collection").questions:
        say(reviewing, questions)
        asked += len(questions)
    report = reviewing.report(proof="collection")
    assert asked < 80  # 45 and more in each of three groups by itself
    assert report.collection.meets
    assert report.finished_images >= 0.95 * 120
    assert report.forecast.answers == 0
    assert report.collection.lower is not None
    assert report.collection.lower >= 0.95
    assert lowest(reviewing) == report.collection.min_probability
    assert reviewing.report(proof="groups").forecast.answers > 0


def test_the_sample_is_random_and_the_same_for_everyone(reviewing: Reviewing) -> None:
    first = reviewing.queue(limit=30, proof="collection").questions
    assert all(one.sample for one in first)
    assert len({one.cluster_id for one in first}) == 3
    assert first == reviewing.queue(limit=30, proof="collection").questions
    others = reviewing.queue(limit=30, proof="collection", labeler="ann").questions
    names = ("ann", "bob", "eve", "kim")
    starts = {
        reviewing.queue(limit=5, proof="collection", labeler=name).questions[0].image_id
        for name in names
    }
    assert len(starts) > 1
    assert len(others) == 30


def test_wrong_photos_that_were_found_are_no_part_of_the_rest(reviewing: Reviewing) -> None:
    say(reviewing, reviewing.queue(limit=10, proof="collection").questions, EXCLUDED)
    report = reviewing.report(proof="collection")
    assert report.excluded_images == 10
    assert report.finished_images == 10
    assert report.collection.upper is not None
    assert report.collection.purity is not None
    assert report.collection.purity < 0.5


def test_photos_that_were_moved_by_hand_are_not_proven(reviewing: Reviewing) -> None:
    moved = [reviewing.stored.images[image] for image in range(0, 30, 3)]
    edit(reviewing.runtime, reviewing.stored, Move(image_ids=moved, cluster_id=1))
    assert reviewing.report(proof="collection").collection.images <= 110
    asked = reviewing.queue(limit=200, proof="collection").questions
    assert not {one.image_id for one in asked} & set(moved)
