"""A clustering of 120 images in three clusters, and people who review it."""

from collections.abc import Callable, Iterable

import pytest

from app.core.clusterings.review.answers import Answer, Answered, kind_of, store_answers
from app.core.clusterings.review.queue import Queue, read_queue
from app.core.clusterings.review.report import Report, read_report
from app.core.clusterings.rows import get_clustering
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, store

IMAGES = 120


class Reviewing:
    """The review of one clustering, as the API does it."""

    def __init__(self, runtime: Runtime, stored: Stored) -> None:
        self.runtime = runtime
        self.stored = stored
        self.id = stored.clustering_id

    def queue(self, limit: int = 500, **options: object) -> Queue:
        with self.runtime.db.read() as session:
            clustering = get_clustering(session, TENANT, self.id)
            return read_queue(session, clustering, limit=limit, **options)  # type: ignore[arg-type]

    def report(self, **options: object) -> Report:
        with self.runtime.db.read() as session:
            clustering = get_clustering(session, TENANT, self.id)
            return read_report(session, clustering, **options)  # type: ignore[arg-type]

    def answer(self, *answers: Answer, **options: object) -> Answered:
        with self.runtime.db.write() as session:
            return store_answers(session, TENANT, self.id, answers, **options)  # type: ignore[arg-type]

    def say(self, image: int, cluster_id: int, said: int | None, sample: bool = False) -> Answered:
        """Answers that the image belongs to the cluster `said`."""
        return self.say_all([(image, cluster_id, said)], sample)

    def say_all(
        self, facts: Iterable[tuple[int, int, int | None]], sample: bool = True
    ) -> Answered:
        """The same for many images, at once."""
        return self.answer(
            *(
                Answer(
                    image_id=self.stored.images[image],
                    cluster_id=cluster_id,
                    answer=kind_of(cluster_id, said),
                    belongs_to=said if kind_of(cluster_id, said) == "which" else None,
                    sample=sample,
                )
                for image, cluster_id, said in facts
            )
        )

    def review_all(self, truth: Callable[[str, int], int | None], rounds: int = 200) -> int:
        """Answers what the queue asks until it is empty; returns the number of answers."""
        asked = 0
        for _ in range(rounds):
            questions = self.queue(limit=50).questions
            if not questions:
                return asked
            asked += len(questions)
            for sample in (True, False):
                facts = [
                    (
                        self.stored.images.index(one.image_id),
                        one.cluster_id,
                        truth(one.image_id, one.cluster_id),
                    )
                    for one in questions
                    if one.sample == sample
                ]
                self.say_all(facts, sample)
        raise AssertionError("the queue does not end")


@pytest.fixture
def reviewing(any_runtime: Runtime) -> Reviewing:
    """Image i is in cluster i % 3; cluster 3 is empty."""
    return Reviewing(any_runtime, store(any_runtime, [i % 3 for i in range(IMAGES)], n_clusters=4))
