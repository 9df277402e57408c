import numpy as np
import pytest
from sqlalchemy import select

from app.core.clusterings.operations import Rename, apply_operation
from app.core.jobs.requests.predict import PredictCreate
from app.core.platform.errors import DatasetNotReady, ModelIntegrity, NotFound
from app.core.platform.tables import EXCLUDED, Cluster, Clustering, Dataset, Job
from app.core.runtime import Runtime
from tests.images import png_bytes
from tests.worker.conftest import Claimed
from tests.worker.job_steps import (
    LABELS,
    PICTURES,
    assignments,
    cluster_job,
    clustering_of,
    create,
    result_of,
)
from tests.worker.tiny import add_dataset, tiny_backbone
from worker.jobs.cluster import run_cluster
from worker.jobs.predict import run_predict

pytestmark = pytest.mark.usefixtures("tiny")


@pytest.fixture
def trained(any_runtime: Runtime, claimed: Claimed) -> Job:
    """A clustering of most of the pictures, in which cluster 1 was renamed."""
    job = cluster_job(any_runtime, add_dataset(any_runtime, PICTURES), model_name="colors")
    run_cluster(claimed(any_runtime, job.id))
    with any_runtime.db.write() as session:
        clustering = session.scalars(select(Clustering)).one()
        apply_operation(session, "default", clustering.id, Rename(cluster_id=1, label="warm"))
    return job


def test_a_dataset_is_assigned_to_the_clusters_of_a_model(
    any_runtime: Runtime, claimed: Claimed, trained: Job
) -> None:
    dataset_id = add_dataset(any_runtime, PICTURES[::-1], LABELS[::-1])
    job = create(any_runtime, PredictCreate(kind="predict", model="colors", dataset_id=dataset_id))

    run_predict(claimed(any_runtime, job.id))

    result = result_of(any_runtime, job)
    clustering = clustering_of(any_runtime, job)
    assert set(result) == {"backbone", "clustering_id", "model", "metrics"}
    assert result["clustering_id"] == clustering.id
    assert result["model"] == {"name": "colors", "version": 1}
    assert result["metrics"]["temi"]["accuracy"] > 0.9
    assert result["metrics"]["kmeans"] is None
    assert (clustering.dataset_id, clustering.model_name) == (dataset_id, "colors")
    before, after = assignments(any_runtime, trained), assignments(any_runtime, job)[::-1]
    assert [cluster for cluster, _ in after] == [cluster for cluster, _ in before]
    np.testing.assert_allclose([p for _, p in after], [p for _, p in before], atol=1e-5)
    with any_runtime.db.read() as session:
        clusters = session.scalars(
            select(Cluster)
            .where(Cluster.clustering_id == clustering.id)
            .order_by(Cluster.cluster_id)
        ).all()
    assert [cluster.label for cluster in clusters] == ["cluster 0", "warm", "cluster 2"]
    assert [cluster.named for cluster in clusters] == [False, True, False]
    assert sum(cluster.size for cluster in clusters) == 30


def test_novel_images_are_excluded(runtime: Runtime, claimed: Claimed) -> None:
    trained = cluster_job(runtime, add_dataset(runtime, PICTURES), model_name="colors")
    run_cluster(claimed(runtime, trained.id))
    other = [png_bytes("white", (32, 32)), png_bytes("black", (32, 32))]
    dataset_id = add_dataset(runtime, [*PICTURES[:3], *other])
    request = PredictCreate(
        kind="predict", model="colors", dataset_id=dataset_id, false_alarm_rate=0.01
    )
    job = create(runtime, request)
    run_predict(claimed(runtime, job.id))
    found = [cluster for cluster, _ in assignments(runtime, job)]
    assert found[3:] == [EXCLUDED, EXCLUDED]
    assert EXCLUDED not in found[:3]
    metrics = result_of(runtime, job)["metrics"]
    assert metrics["novel_images"] == 2
    assert 0.4 <= metrics["mean_novelty"] < 1
    with runtime.db.read() as session:
        sizes = session.scalars(
            select(Cluster.size).where(Cluster.clustering_id == clustering_of(runtime, job).id)
        )
        assert sum(sizes) == 3


def test_fewer_images_than_clusters_are_fine(runtime: Runtime, claimed: Claimed) -> None:
    trained = cluster_job(runtime, add_dataset(runtime, PICTURES), model_name="colors")
    run_cluster(claimed(runtime, trained.id))
    dataset_id = add_dataset(runtime, PICTURES[:1], LABELS[:1])
    job = create(
        runtime, PredictCreate(kind="predict", model="colors/versions/1", dataset_id=dataset_id)
    )

    run_predict(claimed(runtime, job.id))

    assert len(assignments(runtime, job)) == 1


@pytest.mark.usefixtures("own_conversions")
def test_other_weights_are_refused(
    runtime: Runtime, claimed: Claimed, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    trained = cluster_job(runtime, dataset_id, model_name="colors")
    run_cluster(claimed(runtime, trained.id))
    job = create(
        runtime, PredictCreate(kind="predict", model="colors@latest", dataset_id=dataset_id)
    )
    monkeypatch.setattr("app.core.models.files._load_backbone", lambda *_: tiny_backbone(seed=1))

    with pytest.raises(ModelIntegrity):
        run_predict(claimed(runtime, job.id))


def test_unknown_models_and_datasets_are_refused(any_runtime: Runtime, trained: Job) -> None:
    dataset_id = trained.dataset_id
    for model in ("nothing", "colors@nothing", "colors/versions/7", "colors/versions/x", "a/b"):
        with pytest.raises(NotFound, match="model"):
            create(any_runtime, PredictCreate(kind="predict", model=model, dataset_id=dataset_id))
    with pytest.raises(NotFound, match="dataset"):
        create(any_runtime, PredictCreate(kind="predict", model="colors", dataset_id="ds_nothing"))
    with any_runtime.db.write() as session:
        session.get_one(Dataset, dataset_id).status = "ingesting"
    with pytest.raises(DatasetNotReady):
        create(any_runtime, PredictCreate(kind="predict", model="colors", dataset_id=dataset_id))
