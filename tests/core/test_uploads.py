"""What becomes of uploads that nobody finishes."""

import pytest

from app.core.errors import NotFound
from app.core.gc.collecting import collect
from app.core.ids import new_id
from app.core.job_requests.ingest import create_ingest_job
from app.core.runtime import Runtime
from app.core.tables import Dataset, Upload
from app.core.uploads import (
    create_upload,
    get_upload,
    remove_expired,
    settled_offset,
    upload_key,
)
from tests.core.conftest import MakeDataset
from tests.core.gc.tomorrow import collected


def _create(runtime: Runtime, hours: float) -> Upload:
    with runtime.db.write() as session:
        upload = create_upload(session, tenant="t", length=10, attributes={}, hours=hours)
    runtime.storage.write(upload_key(upload.id), b"123")
    return upload


def test_an_upload_lives_for_its_time(any_runtime: Runtime) -> None:
    alive, over = _create(any_runtime, 1), _create(any_runtime, -1)
    with any_runtime.db.read() as session:
        assert get_upload(session, "t", alive.id).length == 10
        for tenant, upload_id in (("t", over.id), ("other", alive.id), ("t", "up_none")):
            with pytest.raises(NotFound):
                get_upload(session, tenant, upload_id)
    assert remove_expired(any_runtime) == 1
    assert settled_offset(any_runtime, alive) == 3
    assert not any_runtime.storage.exists(upload_key(over.id))
    assert remove_expired(any_runtime) == 0


def test_files_without_an_owner_go(any_runtime: Runtime, make_dataset: MakeDataset) -> None:
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
    assert list(collect(any_runtime)) == []  # a sender may still have something in mind
    assert collected(any_runtime) == {lost, listings[1]}
    assert all(map(storage.exists, (of_a_job, listings[0], upload_key(alive.id))))
