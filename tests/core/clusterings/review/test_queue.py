"""The queue: what people are asked next."""

from collections import Counter

from app.core.clusterings.operations import Merge
from app.core.platform.tables import EXCLUDED
from tests.core.clustering_rows import edit, places
from tests.core.clusterings.review.conftest import Reviewing


def test_it_begins_with_a_random_sample_of_each_cluster(reviewing: Reviewing) -> None:
    queue = reviewing.queue()
    assert all(one.sample for one in queue.questions)
    assert Counter(one.cluster_id for one in queue.questions) == {0: 20, 1: 20, 2: 20}
    assert len({one.image_id for one in queue.questions}) == 60
    where = places(reviewing.runtime, reviewing.stored)
    assert all(where[one.image_id] == one.cluster_id for one in queue.questions)
    assert queue == reviewing.queue()  # no chance: the same for everyone
    assert queue.questions[:7] == reviewing.queue(limit=7).questions
    assert reviewing.queue(order="gain").questions == []


def test_the_sample_is_spread_over_the_probabilities(reviewing: Reviewing) -> None:
    drawn = [one for one in reviewing.queue().questions if one.cluster_id == 0]
    halves = Counter(one.probability < 0.65 for one in drawn)  # from 0.35 to 0.95
    assert abs(halves[True] - halves[False]) <= 4


def test_reviewed_images_are_not_asked_again(reviewing: Reviewing) -> None:
    first = reviewing.queue(limit=5).questions
    reviewing.say_all(
        (reviewing.stored.images.index(one.image_id), one.cluster_id, one.cluster_id)
        for one in first
    )
    later = reviewing.queue().questions
    assert not {one.image_id for one in first} & {one.image_id for one in later}
    assert Counter(one.cluster_id for one in later)[first[0].cluster_id] == 15


def test_labelers_begin_with_different_clusters(reviewing: Reviewing) -> None:
    def first(name: str) -> int:
        return reviewing.queue(limit=1, labeler=name).questions[0].cluster_id

    assert len({first(name) for name in ("ann", "bob", "eve", "kim", "zoe")}) > 1
    assert first("ann") == first("ann")


def test_the_queue_of_pure_clusters_ends_before_every_image_was_seen(reviewing: Reviewing) -> None:
    asked = reviewing.review_all(lambda _image, cluster: cluster)
    report = reviewing.report()
    assert asked < 120
    assert all(row.meets for row in report.clusters if row.size)
    assert report.finished_images == 120
    assert report.forecast.answers == 0


def test_the_least_sure_images_follow_once_the_sample_shows_where_wrong_ones_are(
    reviewing: Reviewing,
) -> None:
    """The last third of the images, by probability, is wrong in cluster 0."""
    wrong = set(reviewing.stored.images[80::3]) | set(reviewing.stored.images[81::3])

    def truth(image_id: str, cluster: int) -> int:
        return 1 if cluster == 0 and image_id in wrong else cluster

    reviewing.say_all(
        (
            reviewing.stored.images.index(one.image_id),
            one.cluster_id,
            truth(one.image_id, one.cluster_id),
        )
        for one in reviewing.queue().questions
    )
    chosen = reviewing.queue(order="gain").questions
    assert chosen
    assert not any(one.sample for one in chosen)
    sure = [one.probability for one in chosen if one.cluster_id == 0]
    assert sure == sorted(sure)
    reviewing.review_all(truth)
    where = places(reviewing.runtime, reviewing.stored)
    left = [image for image in wrong if where[image] == 0]
    assert len(left) <= 2  # 5 % of the cluster
    assert all(row.meets for row in reviewing.report().clusters if row.size)


def test_an_image_that_was_moved_by_hand_is_asked_again_and_a_merge_keeps_the_answers(
    reviewing: Reviewing,
) -> None:
    asked = reviewing.review_all(lambda _image, cluster: cluster)
    edit(reviewing.runtime, reviewing.stored, Merge(cluster_ids=[0, 1], into=0))
    assert reviewing.queue().questions == []
    merged = reviewing.report().clusters[0]
    assert merged.size == 80
    assert merged.meets
    assert merged.sampled > asked / 2


def test_excluded_images_are_not_asked(reviewing: Reviewing) -> None:
    reviewing.review_all(lambda _image, _cluster: EXCLUDED)
    assert set(places(reviewing.runtime, reviewing.stored).values()) == {EXCLUDED}
    report = reviewing.report()
    assert report.finished_images == report.excluded_images == 120
