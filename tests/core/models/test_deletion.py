"""Deleting models: versions in use stay, and numbers are never reused."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from sqlalchemy import select

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests.predict import PredictCreate
from app.core.models import deletion, registry
from app.core.platform.errors import NotFound, VersionInUse
from app.core.platform.tables import Clustering, Dataset, Job, Model, ModelVersion
from app.core.runtime import Runtime
from tests.core.clustering_rows import store
from tests.core.conftest import MakeDataset, MakeJob
from tests.core.models.rows import add, point
from tests.core.storage.deletion.collecting import collected


def _delete(runtime: Runtime, version: int) -> list[str]:
    with runtime.db.write() as session:
        return deletion.delete_version(session, "t", "cats", version)


def _latest(runtime: Runtime) -> int:
    with runtime.db.read() as session:
        return registry.resolve(session, "t", "cats")[1].version


def _use(runtime: Runtime, dataset: Dataset, kind: str, version: int, status: str) -> None:
    config = {"model": {"name": "cats", "version": version}}
    with runtime.db.write() as session:
        create_job(session, tenant="t", kind=kind, dataset=dataset, config=config).status = status


def test_latest_is_the_newest_that_is_left(any_runtime: Runtime, make_job: MakeJob) -> None:
    for _ in range(3):
        add(any_runtime, make_job().id)
    _delete(any_runtime, 3)
    assert _latest(any_runtime) == 2
    _delete(any_runtime, 1)
    assert _latest(any_runtime) == 2
    assert add(any_runtime, make_job().id) == 4  # 3 was used
    assert _latest(any_runtime) == 4
    with pytest.raises(NotFound, match="has no version 3"):
        _delete(any_runtime, 3)


def test_without_versions_there_is_no_model(any_runtime: Runtime, make_job: MakeJob) -> None:
    add(any_runtime, make_job().id)
    folders = _delete(any_runtime, 1)
    assert len(folders) == 1
    with any_runtime.db.read() as session:
        for reference in ("cats", "cats@latest", "cats/versions/1"):
            with pytest.raises(NotFound, match="all its versions were deleted"):
                registry.resolve(session, "t", reference)
    assert add(any_runtime, make_job().id) == 2
    assert _latest(any_runtime) == 2


def test_a_version_with_an_alias_cannot_be_deleted(any_runtime: Runtime, make_job: MakeJob) -> None:
    for _ in range(2):
        add(any_runtime, make_job().id)
    point(any_runtime, "live", 1)
    with pytest.raises(VersionInUse, match="'live' points to version 1"):
        _delete(any_runtime, 1)
    with any_runtime.db.write() as session, pytest.raises(VersionInUse):
        deletion.delete_model(session, "t", "cats")
    _delete(any_runtime, 2)
    assert _latest(any_runtime) == 1


@pytest.mark.parametrize("kind", ["predict", "finetune"])
@pytest.mark.parametrize("status", ["queued", "running", "cancelling"])
def test_a_version_of_an_open_job_cannot_be_deleted(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset, kind: str, status: str
) -> None:
    for _ in range(2):
        add(any_runtime, make_job().id)
    _use(any_runtime, make_dataset(), kind, 1, status)
    with pytest.raises(VersionInUse, match=r"job_\w+ uses version 1"):
        _delete(any_runtime, 1)
    with any_runtime.db.write() as session, pytest.raises(VersionInUse):
        deletion.delete_model(session, "t", "cats")
    _delete(any_runtime, 2)


def test_finished_jobs_do_not_prevent_deletion(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    add(any_runtime, make_job().id)
    for status in ("succeeded", "failed", "cancelled"):
        _use(any_runtime, make_dataset(), "predict", 1, status)
    _use(any_runtime, make_dataset(), "predict", 2, "queued")
    assert len(_delete(any_runtime, 1)) == 1


def test_deleting_a_model_deletes_all_versions(any_runtime: Runtime, make_job: MakeJob) -> None:
    for _ in range(3):
        add(any_runtime, make_job().id)
    add(any_runtime, make_job().id, name="dogs")
    add(any_runtime, make_job().id, tenant="other")
    with any_runtime.db.write() as session:
        assert len(deletion.delete_model(session, "t", "cats")) == 3
    with any_runtime.db.write() as session:
        with pytest.raises(NotFound):
            deletion.delete_model(session, "t", "cats")
        left = select(Model.tenant, Model.name).join(
            ModelVersion, ModelVersion.model_id == Model.id
        )
        assert {tuple(row) for row in session.execute(left)} == {("t", "dogs"), ("other", "cats")}


def test_clusterings_stay(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1, 1])
    add(any_runtime, None, name="m")
    with any_runtime.db.write() as session:
        deletion.delete_version(session, "t", "m", 1)
    with any_runtime.db.read() as session:
        assert session.get_one(Clustering, stored.clustering_id).model_version == 1


def test_a_concurrent_job_prevents_deletion_or_is_refused(
    any_runtime: Runtime, make_job: MakeJob, make_dataset: MakeDataset
) -> None:
    """No job is left without its version."""

    def predict(dataset: Dataset, version: int) -> str:
        reference = f"cats/versions/{version}"
        try:
            with any_runtime.db.write() as session:
                request = PredictCreate(kind="predict", model=reference, dataset_id=dataset.id)
                return request.create(session, "t").id
        except NotFound:
            return ""

    def delete(version: int) -> None:
        with suppress(VersionInUse):
            _delete(any_runtime, version)

    for _ in range(5):
        version = add(any_runtime, make_job().id)
        dataset = make_dataset()
        with any_runtime.db.write() as session:
            session.get_one(Dataset, dataset.id).status = "ready"
            session.get_one(ModelVersion, (_model_id(any_runtime), version)).manifest = {
                "backbone": "x",
                "precision": "float32",
            }
        with ThreadPoolExecutor(2) as pool:
            started = pool.submit(predict, dataset, version)
            pool.submit(delete, version).result()
        with any_runtime.db.read() as session:
            found = session.get(ModelVersion, (_model_id(any_runtime), version))
            assert (found is not None) == bool(started.result())
            if found is not None:
                assert session.get_one(Job, started.result()).config["model"]["version"] == version


def _model_id(runtime: Runtime) -> str:
    with runtime.db.read() as session:
        return session.scalars(select(Model.id)).one()


def test_folders_left_by_a_crash_are_collected(any_runtime: Runtime, make_job: MakeJob) -> None:
    registered, unfinished = make_job().id, make_job().id
    add(any_runtime, registered)
    for name in (registered, unfinished, "imp_lost"):
        any_runtime.storage.write(f"models/{name}/model.safetensors", b"x")
    assert list(any_runtime.collector.collect()) == []  # all of them are young
    assert collected(any_runtime) == {"models/imp_lost"}
    kept = {file.key for file in any_runtime.storage.list("models")}
    assert kept == {f"models/{name}/model.safetensors" for name in (registered, unfinished)}
