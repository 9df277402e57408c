"""The clusterings and models that a sweep keeps."""

from typing import Any

import pytest
from sqlalchemy import func, select

from app.core.clusterings.deletion import delete_clustering
from app.core.jobs.finished import delete_job
from app.core.jobs.requests.predict import PredictCreate
from app.core.jobs.requests.sweep import SweepCreate
from app.core.models.files import ModelFiles, verify_files
from app.core.models.versions import resolve
from app.core.platform.tables import Assignment, Clustering, Dataset, Job, ModelVersion
from app.core.runtime import Runtime
from tests.conftest import MakeSettings
from tests.core.storage.deletion.collecting import collected
from tests.worker.conftest import Claimed
from tests.worker.job_steps import PICTURES, cluster_job, create, log_of, result_of
from tests.worker.tiny import add_dataset
from worker.jobs.cluster import run_cluster
from worker.jobs.predict import run_predict
from worker.jobs.sweep import run_sweep
from worker.stages import sweep_registration

pytestmark = pytest.mark.usefixtures("tiny")

VALUES = [2, 3, 9]  # three colors: 3 is suggested


def sweep_job(runtime: Runtime, dataset_id: str, **changes: Any) -> Job:
    settings = {"parameter": "n_clusters", "values": VALUES, "n_heads": 2, "steps": 120}
    return create(runtime, SweepCreate(kind="sweep", dataset_id=dataset_id, **(settings | changes)))


def clusterings(runtime: Runtime, job: Job) -> list[Clustering]:
    """In the order in which they were registered."""
    with runtime.db.read() as session:
        query = select(Clustering).where(Clustering.job_id == job.id).order_by(Clustering.id)
        return list(session.scalars(query))


def current(runtime: Runtime, dataset_id: str) -> str | None:
    with runtime.db.read() as session:
        return session.get_one(Dataset, dataset_id).current_clustering_id


def check_registered_once(runtime: Runtime, job: Job) -> None:
    """Each value has one clustering and one version, complete and with intact files."""
    points = result_of(runtime, job)["points"]
    found = {each.id: each for each in clusterings(runtime, job)}
    assert [found[point["clustering_id"]].n_clusters for point in points] == VALUES
    assert len(found) == len(VALUES)
    with runtime.db.read() as session:
        versions = session.scalars(select(ModelVersion).where(ModelVersion.job_id == job.id)).all()
        rows = session.scalars(
            select(func.count()).select_from(Assignment).group_by(Assignment.clustering_id)
        ).all()
    assert sorted(version.version for version in versions) == [1, 2, 3]
    assert {version.clustering_id for version in versions} == set(found)
    for version in versions:
        verify_files(
            runtime.storage, ModelFiles.of(version.folder, version.files, version.manifest)
        )
    assert list(rows) == [len(PICTURES)] * len(VALUES)


def test_every_value_keeps_its_clustering(any_runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(any_runtime, PICTURES)
    job = sweep_job(any_runtime, dataset_id, model_name="colors")

    run_sweep(claimed(any_runtime, job.id))

    result = result_of(any_runtime, job)
    assert result["suggested"] == 3
    check_registered_once(any_runtime, job)
    # the suggested one is the last: the latest version, and the first in lists
    assert [each.n_clusters for each in clusterings(any_runtime, job)] == [2, 9, 3]
    suggested = result["points"][1]
    assert suggested["model"] == {"name": "colors", "version": 3}
    assert current(any_runtime, dataset_id) == suggested["clustering_id"]
    with any_runtime.db.read() as session:
        _, latest = resolve(session, "default", "colors")
        clustering = session.get_one(Clustering, suggested["clustering_id"])
    assert latest.manifest["n_clusters"] == 3
    assert clustering.metrics["training"].keys() == {"steps", "loss", "settled"}
    files = {each.key for each in any_runtime.storage.list(f"jobs/{job.id}")}
    assert not any("assignments" in key or "model" in key for key in files)


def test_every_version_predicts(runtime: Runtime, claimed: Claimed) -> None:
    job = sweep_job(runtime, add_dataset(runtime, PICTURES), model_name="colors")
    run_sweep(claimed(runtime, job.id))
    other = add_dataset(runtime, PICTURES[::-1])

    for point in result_of(runtime, job)["points"]:
        model = f"colors/versions/{point['model']['version']}"
        predict = create(runtime, PredictCreate(kind="predict", model=model, dataset_id=other))
        run_predict(claimed(runtime, predict.id))
        with runtime.db.read() as session:
            labels = [
                list(
                    session.scalars(
                        select(Assignment.cluster_id)
                        .where(Assignment.clustering_id == clustering_id)
                        .order_by(Assignment.image_id)
                    )
                )
                for clustering_id in (
                    point["clustering_id"],
                    result_of(runtime, predict)["clustering_id"],
                )
            ]
        assert labels[0] == labels[1][::-1]


def test_a_sweep_does_not_replace_the_current_clustering(
    runtime: Runtime, claimed: Claimed
) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    first = cluster_job(runtime, dataset_id)
    run_cluster(claimed(runtime, first.id))
    job = sweep_job(runtime, dataset_id)

    run_sweep(claimed(runtime, job.id))

    assert current(runtime, dataset_id) == result_of(runtime, first)["clustering_id"]


def test_without_a_suggestion_none_becomes_current(runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    job = sweep_job(runtime, dataset_id, values=[9])

    run_sweep(claimed(runtime, job.id))

    assert result_of(runtime, job)["suggested"] is None
    assert len(clusterings(runtime, job)) == 1
    assert current(runtime, dataset_id) is None


def test_a_sweep_over_beta_keeps_its_clusterings_too(runtime: Runtime, claimed: Claimed) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    job = sweep_job(runtime, dataset_id, parameter="beta", values=[0.6, 0.7], n_clusters=3)

    run_sweep(claimed(runtime, job.id))

    points = result_of(runtime, job)["points"]
    found = {each.id for each in clusterings(runtime, job)}
    assert {point["clustering_id"] for point in points} == found
    assert len(found) == 2


@pytest.mark.parametrize("at", [0, 2])
@pytest.mark.parametrize("place", ["_write", "reference_of"])
def test_a_crash_registers_no_point_twice(
    any_runtime: Runtime,
    claimed: Claimed,
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    at: int,
) -> None:
    """The crash comes after the call: between two transactions, or in the middle of one."""
    job = sweep_job(any_runtime, add_dataset(any_runtime, PICTURES), steps=40)
    context = claimed(any_runtime, job.id)
    real, calls = getattr(sweep_registration, place), []

    def crash(*args: Any) -> Any:
        found = real(*args)
        calls.append(args)
        if len(calls) == at + 1:
            raise KeyboardInterrupt
        return found

    monkeypatch.setattr(sweep_registration, place, crash)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(context)
    assert len(clusterings(any_runtime, job)) == at

    run_sweep(context)

    check_registered_once(any_runtime, job)
    with any_runtime.db.write() as session:
        session.get_one(Job, job.id).status = "failed"  # its folders have no other owner
    assert collected(any_runtime, dry_run=True) == set()


def test_a_clustering_that_was_deleted_meanwhile_stays_deleted(
    runtime: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = sweep_job(runtime, add_dataset(runtime, PICTURES))
    context = claimed(runtime, job.id)

    def crash(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sweep_registration, "finish_registration", crash)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(context)
    first, second = clusterings(runtime, job)
    with runtime.db.write() as session:
        delete_clustering(session, "default", first.id)

    run_sweep(context)

    assert [each.n_clusters for each in clusterings(runtime, job)] == [9, 3]
    points = result_of(runtime, job)["points"]
    assert [point["clustering_id"] for point in points][::2] == [first.id, second.id]


@pytest.mark.parametrize("limit", [89, 30, 1])
def test_a_limit_keeps_the_clusterings_around_the_suggested_one(
    make_settings: MakeSettings, claimed: Claimed, limit: int
) -> None:
    runtime = Runtime(make_settings(max_sweep_assignments=limit))
    values = [2, 3, 9]
    job = sweep_job(runtime, add_dataset(runtime, PICTURES), values=values)

    run_sweep(claimed(runtime, job.id))

    points = result_of(runtime, job)["points"]
    left = {each.id: each.n_clusters for each in clusterings(runtime, job)}
    assert len(left) == max(1, limit // len(PICTURES))
    assert points[values.index(3)]["clustering_id"] in left
    assert [point["clustering_id"] for point in points].count(None) == len(values) - len(left)
    said = any("TEMI_MAX_SWEEP_ASSIGNMENTS" in line for line in log_of(runtime, job))
    assert said == (len(left) < len(values))
    runtime.db.dispose()


def test_clusterings_outlive_their_job(any_runtime: Runtime, claimed: Claimed) -> None:
    job = sweep_job(any_runtime, add_dataset(any_runtime, PICTURES), steps=40)
    run_sweep(claimed(any_runtime, job.id))
    before = clusterings(any_runtime, job)

    with any_runtime.db.write() as session:
        delete_job(session, "default", job.id)

    with any_runtime.db.read() as session:
        left = session.scalars(select(Clustering).order_by(Clustering.id)).all()
    assert [each.id for each in left] == [each.id for each in before]
    assert {each.job_id for each in left} == {None}
    assert collected(any_runtime) == {f"jobs/{job.id}"}
