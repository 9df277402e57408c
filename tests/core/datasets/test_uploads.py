"""Uploads: expiry, moving to the storage, abandoned files."""

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from app.core.datasets.uploads import (
    create_upload,
    delete_stale_files,
    delete_upload,
    get_upload,
    store_upload,
)
from app.core.jobs.requests.ingest import create_ingest_job
from app.core.platform.errors import BodyTooLarge, NotFound, UploadIncomplete, UploadOffset
from app.core.platform.ids import new_id
from app.core.platform.tables import Dataset, Upload
from app.core.runtime import Runtime
from app.core.storage.deletion.cleanup import delete_expired_uploads
from app.core.storage.keys import upload_key
from tests.buckets import any_storage
from tests.conftest import MakeSettings
from tests.core.conftest import MakeDataset
from tests.core.storage.deletion.collecting import collected


def _create(runtime: Runtime, hours: float) -> Upload:
    with runtime.db.write() as session:
        upload = create_upload(session, tenant="t", length=10, attributes={}, hours=hours)
    runtime.storage.write(upload_key(upload.id), b"123")
    return upload


def _expire(runtime: Runtime) -> int:
    return delete_expired_uploads(runtime.db, runtime.storage, runtime.settings)


def test_an_upload_expires(any_runtime: Runtime) -> None:
    alive, over = _create(any_runtime, 1), _create(any_runtime, -1)
    with any_runtime.db.read() as session:
        assert get_upload(session, "t", alive.id).length == 10
        for tenant, upload_id in (("t", over.id), ("other", alive.id), ("t", "up_none")):
            with pytest.raises(NotFound):
                get_upload(session, tenant, upload_id)
    assert _expire(any_runtime) == 1
    assert any_runtime.uploads.offset(alive) == 3
    assert not any_runtime.storage.exists(upload_key(over.id))
    assert _expire(any_runtime) == 0


def test_upload_files_without_an_owner_are_collected(
    any_runtime: Runtime, make_dataset: MakeDataset
) -> None:
    storage, dataset = any_runtime.storage, make_dataset()
    alive = _create(any_runtime, 1)
    lost, of_a_job = (upload_key(new_id("up")) for _ in range(2))
    source = {"type": "archive", "key": of_a_job, "labels_from": "none"}
    with any_runtime.db.write() as session:
        row = session.get_one(Dataset, dataset.id)
        job = create_ingest_job(session, tenant="t", dataset=row, source=source)
    listings = [f"listings/{job.id}.jsonl", "listings/job_gone.jsonl"]
    for key in (lost, of_a_job, *listings):
        storage.write(key, b"x")
    assert list(any_runtime.collector.collect()) == []  # they are young
    assert collected(any_runtime) == {lost, listings[1]}
    assert all(map(storage.exists, (of_a_job, listings[0], upload_key(alive.id))))


@any_storage
def test_a_complete_upload_is_moved_to_the_storage(runtime: Runtime) -> None:
    with runtime.db.write() as session:
        upload = create_upload(session, tenant="t", length=10, attributes={}, hours=1)
    with runtime.uploads.append(upload, 0) as file:
        file.write(b"0123")
    assert runtime.uploads.offset(upload) == 4
    with pytest.raises(UploadIncomplete):
        store_upload(runtime.db, runtime.uploads, "t", upload.id)
    with runtime.uploads.append(upload, 4) as file:
        file.write(b"456789")
    assert runtime.storage.read(upload_key(upload.id)) == b"0123456789"
    assert runtime.uploads.offset(upload) == 10
    with pytest.raises(UploadOffset), runtime.uploads.append(upload, 0):
        pass
    with runtime.uploads.append(upload, 10) as file, pytest.raises(BodyTooLarge):
        file.write(b"x")
    assert store_upload(runtime.db, runtime.uploads, "t", upload.id) == upload_key(upload.id)
    assert runtime.storage.read(upload_key(upload.id)) == b"0123456789"
    delete_upload(runtime.db, runtime.uploads, "t", upload.id)
    assert not runtime.storage.exists(upload_key(upload.id))
    assert not list(runtime.settings.staging_dir.iterdir())


def test_a_writer_that_waited_for_a_complete_upload_is_refused(make_settings: MakeSettings) -> None:
    """The file was moved to the storage meanwhile."""
    settings = make_settings()
    runtime = Runtime(settings.model_copy(update={"upload_dir": settings.data_dir / "staging"}))
    with runtime.db.write() as session:
        upload = create_upload(session, tenant="t", length=4, attributes={}, hours=1)

    def append_late() -> None:
        with runtime.uploads.append(upload, 0) as file:
            file.write(b"late")

    with ThreadPoolExecutor(1) as pool:
        with runtime.uploads.append(upload, 0) as file:
            late = pool.submit(append_late)
            time.sleep(0.2)  # it waits for the lock
            file.write(b"good")
        with pytest.raises(UploadOffset):
            late.result()
    assert runtime.storage.read(upload_key(upload.id)) == b"good"
    runtime.db.dispose()


def test_abandoned_uploads_on_this_host_are_deleted(
    make_settings: MakeSettings, tmp_path: Path
) -> None:
    settings = make_settings(upload_dir=tmp_path / "staging")
    delete_stale_files(settings)
    settings.staging_dir.mkdir()
    for name, hours in (("old", 49), ("young", 47)):
        (settings.staging_dir / name).write_bytes(b"half")
        then = time.time() - hours * 3600
        os.utime(settings.staging_dir / name, (then, then))
    delete_stale_files(settings)
    assert [path.name for path in settings.staging_dir.iterdir()] == ["young"]
