"""A predict job over a grown dataset adds the new images to the clustering and keeps its edits."""

from collections.abc import Sequence

import pytest
from sqlalchemy import delete, select

from app.core.clusterings.operations import (
    Exclude,
    Merge,
    Move,
    Operation,
    Rename,
    Split,
    Undo,
    apply_operation,
)
from app.core.clusterings.revisions import iterate_pages, open_revision
from app.core.clusterings.splitting import plan_split
from app.core.jobs.requests.predict import PredictCreate
from app.core.platform.tables import Cluster, Clustering, ClusteringOperation, Dataset, Image, Job
from app.core.runtime import Runtime
from tests.worker.conftest import Claimed
from tests.worker.job_steps import COLORS, PICTURES, cluster_job, create, result_of
from tests.worker.tiny import add_dataset, append, picture
from worker.jobs.cluster import run_cluster
from worker.jobs.predict import run_predict

pytestmark = pytest.mark.usefixtures("tiny")
RED, GREEN, BLUE = COLORS.values()
NEW = [picture(40, RED), picture(41, RED), picture(42, GREEN), picture(43, BLUE)]


@pytest.fixture
def trained(any_runtime: Runtime, claimed: Claimed) -> Job:
    """Ten red, ten green and ten blue images, one cluster each."""
    job = cluster_job(any_runtime, add_dataset(any_runtime, PICTURES), model_name="colors")
    run_cluster(claimed(any_runtime, job.id))
    return job


def _clustering(runtime: Runtime) -> Clustering:
    with runtime.db.read() as session:
        return session.scalars(select(Clustering)).one()


def _edit(runtime: Runtime, *operations: Operation) -> None:
    clustering = _clustering(runtime)
    for operation in operations:
        with runtime.db.write() as session:
            apply_operation(session, "default", clustering.id, operation)


def _predict(runtime: Runtime, claimed: Claimed, dataset_id: str, **options: bool) -> Job:
    body = PredictCreate(kind="predict", model="colors", dataset_id=dataset_id, **options)
    job = create(runtime, body)
    run_predict(claimed(runtime, job.id))
    return job


def _labels(runtime: Runtime, revision: int | None = None) -> list[int | None]:
    """The cluster of each image in the order of the upload; None if it is excluded."""
    with runtime.db.read() as session:
        view = open_revision(session, session.scalars(select(Clustering)).one(), revision)
    return [row.cluster_id for page in iterate_pages(runtime.db, view) for row in page]


def _image_ids(runtime: Runtime) -> Sequence[str]:
    with runtime.db.read() as session:
        return session.scalars(select(Image.id).order_by(Image.position)).all()


def test_every_edit_stays(any_runtime: Runtime, claimed: Claimed, trained: Job) -> None:
    red, green, blue = (_labels(any_runtime)[start] for start in (0, 10, 20))
    assert red is not None
    assert green is not None
    images = _image_ids(any_runtime)
    _edit(
        any_runtime,
        Merge(cluster_ids=[red, green], into=green, label="warm"),
        Exclude(image_ids=[images[29]]),
        Move(image_ids=[images[0]], new_cluster="odd"),
    )
    before = _labels(any_runtime)

    append(any_runtime, trained.dataset_id or "", NEW)
    job = _predict(any_runtime, claimed, trained.dataset_id or "")

    clustering = _clustering(any_runtime)
    result = result_of(any_runtime, job)
    assert (result["clustering_id"], result["added_images"]) == (clustering.id, 4)
    assert _labels(any_runtime) == [*before, green, green, green, blue]
    assert _labels(any_runtime, clustering.revision - 1) == before
    assert (clustering.image_count, clustering.n_clusters) == (34, 3)
    with any_runtime.db.read() as session:
        clusters = session.scalars(select(Cluster).where(Cluster.active)).all()
        extended = session.get_one(ClusteringOperation, (clustering.id, clustering.revision))
    sizes = {cluster.label: cluster.size for cluster in clusters}
    assert sizes == {"warm": 22, "odd": 1, f"cluster {blue}": 10}
    assert (extended.kind, extended.arguments) == ("extend", {"images": 4, "job_id": job.id})


def test_new_images_go_to_the_nearest_part_of_a_split(
    any_runtime: Runtime, claimed: Claimed, trained: Job
) -> None:
    """Red and green are merged, then split: k-means finds the two colors again."""
    red, green = (_labels(any_runtime)[start] for start in (0, 10))
    assert red is not None
    assert green is not None
    _edit(any_runtime, Merge(cluster_ids=[red, green], into=red))
    clustering = _clustering(any_runtime)
    arguments = {"cluster_id": red, "parts": 2, "seed": 0}
    plan = plan_split(
        any_runtime.db, any_runtime.storage, "default", clustering.id, revisions=None, **arguments
    )
    _edit(any_runtime, Split(cluster_id=red, plan=plan))
    split = _labels(any_runtime)
    assert len({*split[:10]}) == len({*split[10:20]}) == 1
    assert split[0] != split[10]

    append(any_runtime, trained.dataset_id or "", NEW)
    _predict(any_runtime, claimed, trained.dataset_id or "")

    assert _labels(any_runtime)[30:] == [split[0], split[0], split[10], split[20]]
    _edit(any_runtime, Undo())  # of the split: its part disappears, the images do not
    assert _labels(any_runtime)[30:] == [red, red, red, split[20]]


def test_undo_leaves_added_images(any_runtime: Runtime, claimed: Claimed, trained: Job) -> None:
    _edit(any_runtime, Rename(cluster_id=0, label="first"))
    append(any_runtime, trained.dataset_id or "", NEW)
    _predict(any_runtime, claimed, trained.dataset_id or "")
    _edit(any_runtime, Undo())
    with any_runtime.db.read() as session:
        clustering = session.scalars(select(Clustering)).one()
        assert session.get_one(Cluster, (clustering.id, 0)).label == "cluster 0"
    assert len(_labels(any_runtime)) == 34


def test_without_new_images_nothing_changes(
    any_runtime: Runtime, claimed: Claimed, trained: Job
) -> None:
    job = _predict(any_runtime, claimed, trained.dataset_id or "")
    assert result_of(any_runtime, job)["added_images"] == 0
    assert _clustering(any_runtime).revision == 1


def test_edits_during_the_job_stay(
    any_runtime: Runtime, claimed: Claimed, trained: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person merges between the plan and the registration."""
    red, green = (_labels(any_runtime)[start] for start in (0, 10))
    assert red is not None
    assert green is not None
    append(any_runtime, trained.dataset_id or "", NEW)
    body = PredictCreate(kind="predict", model="colors", dataset_id=trained.dataset_id or "")
    context = claimed(any_runtime, create(any_runtime, body).id)
    transaction = type(context).transaction

    def merge_first(self: object) -> object:
        if _clustering(any_runtime).revision == 1:
            _edit(any_runtime, Merge(cluster_ids=[red, green], into=green))
        return transaction(self)  # type: ignore[arg-type]

    monkeypatch.setattr(type(context), "transaction", merge_first)
    run_predict(context)

    assert _labels(any_runtime)[30:33] == [green] * 3


def test_a_new_clustering_on_request(any_runtime: Runtime, claimed: Claimed, trained: Job) -> None:
    """It starts with the names and merges of the model; the first one stays current."""
    first = _clustering(any_runtime).id
    _edit(any_runtime, Merge(cluster_ids=[0, 1], into=1, label="both"))
    append(any_runtime, trained.dataset_id or "", NEW)

    job = _predict(any_runtime, claimed, trained.dataset_id or "", extend=False)

    new = result_of(any_runtime, job)["clustering_id"]
    assert new != first
    with any_runtime.db.read() as session:
        dataset = session.get_one(Dataset, trained.dataset_id)
        clustering = session.get_one(Clustering, new)
        rows = session.scalars(select(Cluster).where(Cluster.clustering_id == new, Cluster.active))
        sizes = {row.label: row.size for row in rows}
    assert (dataset.current_clustering_id, clustering.n_clusters) == (first, 2)
    assert sizes["both"] + sizes["cluster 2"] == 34


def test_a_clustering_that_was_deleted_meanwhile(
    any_runtime: Runtime, claimed: Claimed, trained: Job
) -> None:
    body = PredictCreate(kind="predict", model="colors", dataset_id=trained.dataset_id or "")
    job = create(any_runtime, body)
    with any_runtime.db.write() as session:
        session.execute(delete(Clustering))
    run_predict(claimed(any_runtime, job.id))
    assert len(_labels(any_runtime)) == 30
