import pytest

from app.core.exports.files import (
    delete_export,
    export_filename,
    get_export,
)
from app.core.exports.formats import FormatName
from app.core.jobs.lifecycle import create_job
from app.core.platform.errors import NotFound
from app.core.platform.ids import new_id
from app.core.platform.tables import Clustering, Dataset, Export, Job
from app.core.runtime import Runtime
from app.core.storage.keys import export_key
from tests.core.labeled_rows import State, add_images, store_history
from tests.core.storage.deletion.collecting import collected


@pytest.fixture
def clustering(any_runtime: Runtime) -> Clustering:
    dataset = add_images(any_runtime, 1)
    return store_history(any_runtime, dataset.id, [State((0,), {0: ("cats", True)})])


def add_export(runtime: Runtime, clustering: Clustering, *, status: str = "succeeded") -> str:
    """Writes a file and its job, and its row if the job succeeded; returns the job's id."""
    with runtime.db.write() as session:
        dataset = session.get_one(Dataset, clustering.dataset_id)
        job = create_job(session, tenant="default", kind="export", dataset=dataset, config={})
        job.status = status
        key = export_key(job.id, "a.csv")
        if status == "succeeded":
            session.flush()
            session.add(
                Export(
                    id=new_id("exp"),
                    tenant="default",
                    job_id=job.id,
                    clustering_id=clustering.id,
                    revision=1,
                    format="csv",
                    storage_key=key,
                    filename="a.csv",
                    media_type="text/csv",
                    image_count=1,
                    bytes=3,
                    sha256="00",
                )
            )
    runtime.storage.write(key, b"abc")
    return job.id


@pytest.mark.parametrize(
    ("name", "format_", "expected"),
    [
        ("Holiday photos", "parquet", "Holiday-photos-rev3.parquet"),
        ("../../etc", "coco", "etc-rev3-coco.json"),
        ("写真", "csv", "写真-rev3.csv"),
        ("///", "image_folder", "dataset-rev3-folders.zip"),
        ("é" * 200, "jsonl", "é" * 40 + "-rev3.jsonl"),
    ],
)
def test_a_file_is_named_after_its_dataset(name: str, format_: FormatName, expected: str) -> None:
    assert export_filename(name, 3, format_) == expected
    assert len(export_key("job_01k9z3m4q5r6s7t8v9w0x1y2z3", expected)) <= 200


def test_deleting_removes_row_and_file(any_runtime: Runtime, clustering: Clustering) -> None:
    job_id = add_export(any_runtime, clustering)
    with any_runtime.db.read() as session:
        export_id = session.query(Export.id).scalar()
        with pytest.raises(NotFound):
            get_export(session, "other", export_id)
    with pytest.raises(NotFound):
        delete_export(any_runtime.db, any_runtime.storage, "other", export_id)
    assert any_runtime.storage.exists(export_key(job_id, "a.csv"))

    delete_export(any_runtime.db, any_runtime.storage, "default", export_id)

    assert list(any_runtime.storage.list("exports")) == []
    with any_runtime.db.read() as session:
        assert session.get(Export, export_id) is None


def test_files_without_a_row_are_collected(any_runtime: Runtime, clustering: Clustering) -> None:
    kept = add_export(any_runtime, clustering)
    running = add_export(any_runtime, clustering, status="running")
    failed = add_export(any_runtime, clustering, status="failed")
    with any_runtime.db.write() as session:  # its row stays when its job goes
        session.delete(session.get_one(Job, kept))
    assert collected(any_runtime) == {export_key(failed, "a.csv")}

    with any_runtime.db.write() as session:
        session.delete(session.get_one(Clustering, clustering.id))
    assert collected(any_runtime) == {export_key(kept, "a.csv")}
    assert any_runtime.storage.exists(export_key(running, "a.csv"))
