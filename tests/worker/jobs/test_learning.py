"""Cluster jobs that learn from what people said about an earlier clustering."""

from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from app.core.clusterings.deletion import delete_clustering
from app.core.clusterings.operations import (
    Exclude,
    Merge,
    Move,
    Operation,
    Rename,
    Undo,
    apply_operation,
)
from app.core.platform.errors import ClusteringInUse, InvalidRequest
from app.core.platform.tables import EXCLUDED, Assignment, Cluster, Clustering, Image, Job, Review
from app.core.runtime import Runtime
from tests.conftest import MakeSettings
from tests.worker.conftest import Claimed
from tests.worker.job_steps import (
    PICTURES,
    assignments,
    cluster_job,
    clustering_of,
    log_of,
    result_of,
)
from tests.worker.tiny import add_dataset, append, picture
from worker.jobs.cluster import run_cluster
from worker.stages import curves
from worker.stages import resumable as resume

pytestmark = pytest.mark.usefixtures("tiny")


def trained(runtime: Runtime, claimed: Claimed, **settings: Any) -> Clustering:
    """A clustering of ten red, ten green and ten blue pictures."""
    job = cluster_job(runtime, add_dataset(runtime, PICTURES), **settings)
    run_cluster(claimed(runtime, job.id))
    return clustering_of(runtime, job)


def edit(runtime: Runtime, clustering: Clustering, *operations: Operation) -> None:
    for operation in operations:
        with runtime.db.write() as session:
            apply_operation(session, "default", clustering.id, operation)


def review(
    runtime: Runtime, clustering: Clustering, answers: dict[str, tuple[int, int | None]]
) -> None:
    """Answers by image: the cluster that was asked about, and what was said."""
    with runtime.db.write() as session:
        for image_id, (asked, said) in answers.items():
            session.add(
                Review(
                    clustering_id=clustering.id,
                    image_id=image_id,
                    cluster_id=asked,
                    belongs_to=said,
                    reviewed_by="anna",
                )
            )


def images(runtime: Runtime, dataset_id: str) -> list[str]:
    with runtime.db.read() as session:
        query = select(Image.id).where(Image.dataset_id == dataset_id).order_by(Image.position)
        return list(session.scalars(query))


def places(runtime: Runtime, clustering: Clustering) -> dict[str, int]:
    with runtime.db.read() as session:
        rows = select(Assignment.image_id, Assignment.cluster_id).where(
            Assignment.clustering_id == clustering.id
        )
        return {image_id: number for image_id, number in session.execute(rows)}


def names(runtime: Runtime, clustering: Clustering) -> dict[int, str]:
    with runtime.db.read() as session:
        rows = select(Cluster).where(Cluster.clustering_id == clustering.id, Cluster.active)
        return {row.cluster_id: row.label for row in session.scalars(rows)}


def learn(
    runtime: Runtime, claimed: Claimed, source: Clustering, **settings: Any
) -> tuple[Job, Clustering]:
    settings = {"n_clusters": "auto", "learn_from": source.id, **settings}
    job = cluster_job(runtime, source.dataset_id, **settings)
    run_cluster(claimed(runtime, job.id))
    return job, clustering_of(runtime, job)


def test_what_people_said_is_kept(any_runtime: Runtime, claimed: Claimed) -> None:
    source = trained(any_runtime, claimed)
    ids, before = images(any_runtime, source.dataset_id), places(any_runtime, source)
    red, green, blue = (before[ids[position]] for position in (0, 10, 20))
    edit(
        any_runtime,
        source,
        Rename(cluster_id=green, label="leaves"),
        Move(image_ids=[ids[1]], cluster_id=blue),
        Exclude(image_ids=[ids[2]]),
        Exclude(image_ids=[ids[3]]),
        Undo(),
    )
    review(
        any_runtime,
        source,
        {ids[4]: (red, red), ids[5]: (red, blue), ids[6]: (red, None), ids[7]: (red, EXCLUDED)},
    )

    job, clustering = learn(any_runtime, claimed, source)

    found = places(any_runtime, clustering)
    said = {ids[1]: blue, ids[2]: EXCLUDED, ids[4]: red, ids[5]: blue, ids[7]: EXCLUDED}
    assert {one: found[one] for one in said} == said
    assert found[ids[6]] not in (red, EXCLUDED)
    assert all(found[one] == before[one] for one in ids[10:])
    assert names(any_runtime, clustering)[green] == "leaves"
    assert job.config["train"]["n_clusters"] == 3
    learning = result_of(any_runtime, job)["metrics"]["learning"]
    assert learning == {
        "clustering_id": source.id,
        "revision": 6,
        "confirmed": 1,
        "moved": 2,
        "excluded": 2,
        "refused": 1,
        "merges": 0,
        "splits": 0,
        "cluster_ids": [0, 1, 2],
    }
    assert any(source.id in line for line in log_of(any_runtime, job))
    assert (clustering.model_name, clustering.model_version) == (source.model_name, 2)


def test_answers_hold_for_later_trainings(runtime: Runtime, claimed: Claimed) -> None:
    source = trained(runtime, claimed)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    red, blue = before[ids[0]], before[ids[20]]
    edit(runtime, source, Move(image_ids=[ids[1]], cluster_id=blue), Exclude(image_ids=[ids[2]]))
    review(runtime, source, {ids[3]: (red, red), ids[4]: (red, None)})

    _, second = learn(runtime, claimed, source)
    _, third = learn(runtime, claimed, second)

    found = places(runtime, third)
    assert [found[one] for one in ids[1:4]] == [blue, EXCLUDED, red]
    assert found[ids[4]] != red
    with runtime.db.read() as session:
        query = select(Review).where(Review.clustering_id == third.id).order_by(Review.image_id)
        carried = {row.image_id: row for row in session.scalars(query)}
    assert {one: row.belongs_to for one, row in carried.items()} == dict(
        zip(ids[1:5], (blue, EXCLUDED, red, None), strict=True)
    )
    assert carried[ids[3]].reviewed_by == "anna"
    assert carried[ids[1]].reviewed_by is None


def test_merged_clusters_stay_one_and_new_images_join(runtime: Runtime, claimed: Claimed) -> None:
    source = trained(runtime, claimed)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    red, green, blue = (before[ids[position]] for position in (0, 10, 20))
    edit(runtime, source, Merge(cluster_ids=[red, green], into=green, label="not blue"))
    append(runtime, source.dataset_id, [picture(99, (200, 40, 40)), picture(98, (40, 40, 200))])

    job, clustering = learn(runtime, claimed, source)

    ids = images(runtime, source.dataset_id)
    found, earlier = places(runtime, clustering), job.config["learn_from"]["cluster_ids"]
    assert earlier == sorted({green, blue})
    assert job.config["train"]["n_clusters"] == clustering.n_clusters == 2
    merged, other = found[ids[0]], found[ids[20]]
    assert [found[one] for one in ids] == [merged] * 20 + [other] * 10 + [merged, other]
    assert names(runtime, clustering)[merged] == "not blue"
    assert clustering.metrics["learning"]["merges"] == 1


def test_a_further_cluster_can_be_asked_for(runtime: Runtime, claimed: Claimed) -> None:
    source = trained(runtime, claimed)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    red, green = before[ids[0]], before[ids[10]]
    edit(runtime, source, Merge(cluster_ids=[red, green], into=red, label=None))

    _, clustering = learn(runtime, claimed, source, n_clusters=3)

    assert clustering.n_clusters == 3
    assert clustering.metrics["learning"]["cluster_ids"].count(None) == 1


def test_what_is_said_after_the_request_does_not_count(runtime: Runtime, claimed: Claimed) -> None:
    source = trained(runtime, claimed)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    red, blue = before[ids[0]], before[ids[20]]
    edit(runtime, source, Move(image_ids=[ids[1]], cluster_id=blue))
    job = cluster_job(runtime, source.dataset_id, n_clusters="auto", learn_from=source.id)
    edit(runtime, source, Move(image_ids=[ids[2]], cluster_id=blue))
    review(runtime, source, {ids[3]: (red, blue)})

    run_cluster(claimed(runtime, job.id))

    found = places(runtime, clustering_of(runtime, job))
    assert [found[one] for one in ids[1:4]] == [blue, red, red]
    assert clustering_of(runtime, job).metrics["learning"]["moved"] == 1


def test_a_killed_job_learns_the_same(
    make_settings: MakeSettings, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "_FIRST_STEPS", 10)
    runtime = Runtime(make_settings(checkpoint_seconds=1e-9))
    source = trained(runtime, claimed)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    edit(runtime, source, Move(image_ids=ids[1:3], cluster_id=before[ids[20]]))
    calm, disturbed = (
        cluster_job(runtime, source.dataset_id, n_clusters="auto", learn_from=source.id)
        for _ in range(2)
    )
    run_cluster(claimed(runtime, calm.id))
    context = claimed(runtime, disturbed.id)
    show = curves.TrainingCurve.add

    def crash(self: Any, trainer: Any, report: Any) -> None:
        show(self, trainer, report)
        if report.step > 10:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(curves.TrainingCurve, "add", crash)
        with pytest.raises(KeyboardInterrupt):
            run_cluster(context)
    edit(runtime, source, Undo())  # it was read already

    run_cluster(replace(context))

    assert assignments(runtime, disturbed) == assignments(runtime, calm)
    first, second = (clustering_of(runtime, one).metrics for one in (calm, disturbed))
    assert first["learning"] == second["learning"]
    runtime.db.dispose()


def test_duplicates_out_of_training_are_kept_as_said(runtime: Runtime, claimed: Claimed) -> None:
    job = cluster_job(runtime, add_dataset(runtime, [*PICTURES, *PICTURES[:4]]))
    run_cluster(claimed(runtime, job.id))
    source = clustering_of(runtime, job)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    red, blue = before[ids[0]], before[ids[20]]
    edit(runtime, source, Move(image_ids=[ids[31]], cluster_id=blue))
    review(runtime, source, {ids[32]: (red, None), ids[5]: (red, None)})

    _, clustering = learn(runtime, claimed, source, exclude_duplicates="exact")

    found = places(runtime, clustering)
    assert found[ids[31]] == blue
    assert red not in (found[ids[32]], found[ids[5]])


def test_an_image_that_belongs_to_no_cluster_is_excluded(
    runtime: Runtime, claimed: Claimed
) -> None:
    source = trained(runtime, claimed)
    ids, before = images(runtime, source.dataset_id), places(runtime, source)
    edit(runtime, source, Merge(cluster_ids=[0, 1, 2], into=0, label=None))
    review(runtime, source, {ids[0]: (0, None)})

    _, clustering = learn(runtime, claimed, source, n_clusters=2)

    assert before[ids[0]] >= 0
    assert places(runtime, clustering)[ids[0]] != 0


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"learn_from": "cl_none"}, "learn_from", "there is no clustering cl_none"),
        ({"n_clusters": 2}, "n_clusters", "at least 3"),
        ({"n_clusters": 1001}, "n_clusters", "at most 1,000"),
        ({"select": "lowest_loss"}, "select", "learn_from"),
        ({"recipe": "paper"}, "recipe", "learn_from"),
    ],
)
def test_wrong_settings_are_refused(
    runtime: Runtime, claimed: Claimed, changes: dict[str, Any], field: str, message: str
) -> None:
    source = trained(runtime, claimed)
    edit(runtime, source, Exclude(image_ids=images(runtime, source.dataset_id)[:1]))
    given = {"n_clusters": "auto", "learn_from": source.id, **changes}

    with pytest.raises(InvalidRequest, match=message) as refused:
        cluster_job(runtime, source.dataset_id, **given)

    assert refused.value.errors[0].field == field


def test_another_dataset_and_no_answers_are_refused(runtime: Runtime, claimed: Claimed) -> None:
    source = trained(runtime, claimed)
    other = add_dataset(runtime, PICTURES[:6])

    with pytest.raises(InvalidRequest, match="nothing to learn from"):
        cluster_job(runtime, source.dataset_id, learn_from=source.id)
    edit(runtime, source, Exclude(image_ids=images(runtime, source.dataset_id)[:1]))
    with pytest.raises(InvalidRequest, match="is a clustering of"):
        cluster_job(runtime, other, learn_from=source.id)


def test_a_clustering_is_not_deleted_while_a_job_learns_from_it(
    any_runtime: Runtime, claimed: Claimed
) -> None:
    source = trained(any_runtime, claimed)
    edit(any_runtime, source, Exclude(image_ids=images(any_runtime, source.dataset_id)[:1]))
    job = cluster_job(any_runtime, source.dataset_id, n_clusters="auto", learn_from=source.id)

    with pytest.raises(ClusteringInUse, match=job.id), any_runtime.db.write() as session:
        delete_clustering(session, "default", source.id)
