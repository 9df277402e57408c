"""Whole clustering jobs on a tiny backbone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select

from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Cluster, Job
from app.core.runtime import Runtime
from temi.analysis import cluster_count
from tests.conftest import MakeSettings
from tests.worker.conftest import Claimed
from tests.worker.job_steps import (
    LABELS,
    PICTURES,
    assignments,
    cluster_job,
    clustering_of,
    curve,
    log_of,
    reload,
    result_of,
)
from tests.worker.tiny import add_dataset
from worker.jobs import cluster
from worker.jobs.cluster import run_cluster
from worker.stages import curves
from worker.stages import resumable as resume

pytestmark = pytest.mark.usefixtures("tiny")


def test_a_job_ends_with_a_clustering(any_runtime: Runtime, claimed: Claimed) -> None:
    job = cluster_job(any_runtime, add_dataset(any_runtime, PICTURES, LABELS))

    run_cluster(claimed(any_runtime, job.id))

    with any_runtime.db.read() as session:
        clusters = session.scalars(select(Cluster).order_by(Cluster.cluster_id)).all()
    clustering = clustering_of(any_runtime, job)
    assert set(reload(any_runtime, job).timings) == {"embed", "mine", "train", "evaluate"}
    assert result_of(any_runtime, job)["metrics"]["temi"]["accuracy"] > 0.9
    assert clustering.embedding_folder is not None
    assert any_runtime.storage.exists(f"{clustering.embedding_folder}/hashes.npy")
    assert [cluster.label for cluster in clusters] == ["cluster 0", "cluster 1", "cluster 2"]
    assert sum(cluster.size for cluster in clusters) == 30


def test_the_number_of_clusters_is_found(any_runtime: Runtime, claimed: Claimed) -> None:
    job = cluster_job(any_runtime, add_dataset(any_runtime, PICTURES), n_clusters="auto", beta=0.7)
    assert job.config["train"]["n_clusters"] is None

    run_cluster(claimed(any_runtime, job.id))

    done, clustering = reload(any_runtime, job), clustering_of(any_runtime, job)
    assert set(done.timings) == {"embed", "count", "mine", "train", "evaluate"}
    assert done.config == cluster_config(any_runtime, job, n_clusters=3, beta=0.7)
    assert clustering.n_clusters == 3
    assert clustering.metrics["count"]["suggested"] == [3]
    assert [point["n_clusters"] for point in clustering.metrics["count"]["points"]] == [2, 3]
    assert "Found 3 clusters." in log_of(any_runtime, job)


def test_a_found_number_survives_a_crash(
    runtime: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = cluster_job(runtime, add_dataset(runtime, PICTURES), n_clusters="auto")
    context = claimed(runtime, job.id)

    def crash(*_args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(cluster, "mine_pairs", crash)
        with pytest.raises(KeyboardInterrupt):
            run_cluster(context)
    monkeypatch.setattr(cluster_count, "estimate_cluster_count", crash)  # it is not called again

    run_cluster(replace(context, job=reload(runtime, job)))

    assert clustering_of(runtime, job).n_clusters == 3


def cluster_config(runtime: Runtime, job: Job, **changes: Any) -> dict[str, Any]:
    """The configuration of a job with these settings on the same dataset."""
    assert job.dataset_id is not None
    return cluster_job(runtime, job.dataset_id, **changes).config


def test_training_draws_its_curves(runtime: Runtime, claimed: Claimed) -> None:
    job = cluster_job(runtime, add_dataset(runtime, PICTURES))

    run_cluster(claimed(runtime, job.id))

    points = curve(runtime, job)
    assert min(points) == 1
    last = points[max(points)]
    assert len(last["losses"]) == 2
    assert last["loss"] == min(last["losses"]) == last["losses"][last["best_head"]]
    assert last["learning_rate"] >= 0
    assert 0 <= last["conditional_entropy"] <= last["occupancy_entropy"] <= np.log(3) + 1e-6
    assert last["used_clusters"] == 3


def test_a_killed_run_resumes_to_the_same_bits(
    make_settings: MakeSettings, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "_FIRST_STEPS", 10)
    runtime = Runtime(make_settings(checkpoint_seconds=1e-9))
    dataset_id = add_dataset(runtime, PICTURES)
    calm, disturbed = cluster_job(runtime, dataset_id), cluster_job(runtime, dataset_id)
    run_cluster(claimed(runtime, calm.id))
    context = claimed(runtime, disturbed.id)
    show = curves.TrainingCurve.add

    def crash(self: Any, trainer: Any, report: Any) -> None:
        show(self, trainer, report)
        if report.step > 10:  # a checkpoint of step 10 exists, none of this step
            raise KeyboardInterrupt

    monkeypatch.setattr(curves.TrainingCurve, "add", crash)
    with pytest.raises(KeyboardInterrupt):
        run_cluster(context)
    assert max(curve(runtime, disturbed)) > 10
    monkeypatch.setattr(curves.TrainingCurve, "add", show)
    monkeypatch.setattr(resume, "_REPORT_SECONDS", 0.0)  # other numbers of steps than before

    run_cluster(context)

    assert assignments(runtime, disturbed) == assignments(runtime, calm)
    assert list(curve(runtime, disturbed))[:3] == [
        10,
        20,
        21,
    ]  # the points of the crashed run were deleted
    runtime.db.dispose()


@pytest.mark.parametrize("mode", ["exact", "near"])
def test_excluded_duplicates_are_still_assigned(
    runtime: Runtime, claimed: Claimed, mode: str
) -> None:
    pictures = [*PICTURES, *PICTURES[:8], *PICTURES[20:]]
    job = cluster_job(runtime, add_dataset(runtime, pictures), exclude_duplicates=mode)
    plain = cluster_job(runtime, add_dataset(runtime, PICTURES))
    assert job.config["train"]["n_neighbors"] == plain.config["train"]["n_neighbors"]

    for one in (job, plain):
        run_cluster(claimed(runtime, one.id))

    found = assignments(runtime, job)
    assert len(found) == 48
    if mode == "exact":
        np.testing.assert_allclose(
            [p for _, p in found[:30]], [p for _, p in assignments(runtime, plain)], atol=1e-5
        )
    assert found[:8] == found[30:38]


def test_too_few_distinct_images_are_refused(runtime: Runtime) -> None:
    dataset_id = add_dataset(runtime, PICTURES[:2] * 5)

    with pytest.raises(InvalidRequest) as refused:
        cluster_job(runtime, dataset_id, exclude_duplicates="exact")
    assert refused.value.errors[0].field == "n_clusters"
    cluster_job(runtime, dataset_id)
