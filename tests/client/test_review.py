"""The review of a clustering, against the real API."""

import pytest

from temi_client import Answer, ApiError, Clustering, TemiClient


@pytest.fixture
def clustering(live_client: TemiClient) -> Clustering:
    (found,) = live_client.clusterings()
    return found


def test_a_review_from_the_first_question_to_the_report(
    live_client: TemiClient, clustering: Clustering
) -> None:
    at = clustering.id
    assert live_client.review(at).forecast.basis == "probabilities"
    asked = live_client.review_queue(at, labeler="anna").data
    assert len(asked) == 4
    assert live_client.review_queue(at, limit=1, order="sample").data[0].sample
    stored = live_client.answer_review(at, [one.answered("yes") for one in asked])
    assert len(stored.stored) == 4
    report = live_client.review(at, min_purity=0.9, confidence=0.9, target=0.5)
    assert (report.min_purity, report.confidence, report.finished_images) == (0.9, 0.9, 4)
    assert [row.purity for row in report.clusters] == [1, 1, None]
    assert {row.answer for row in live_client.review_answers(at)} == {"yes"}


def test_an_answer_moves_an_image_until_it_is_withdrawn(
    live_client: TemiClient, clustering: Clustering
) -> None:
    at = clustering.id
    question = live_client.review_queue(at, limit=1).data[0]
    moved = live_client.answer_review(at, [question.answered("which", 2)], revision=1)
    assert moved.revision == 2
    assert live_client.get_cluster(at, 2).size == 1
    late = live_client.answer_review(at, [question.answered("yes")])
    assert [(one.image_id, one.cluster_id) for one in late.refused] == [(question.image_id, 2)]
    live_client.withdraw_answer(at, question.image_id)
    assert live_client.get_cluster(at, 2).size == 0
    with pytest.raises(ApiError, match="no answer about the image"):
        live_client.withdraw_answer(at, question.image_id)
    with pytest.raises(ApiError, match="img_x is not in this clustering"):
        live_client.answer_review(at, [Answer(image_id="img_x", cluster_id=0, answer="no")])
