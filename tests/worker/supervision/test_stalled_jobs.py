"""Jobs that hang in a real process: a pipe is in place of a file, so reading never ends."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from app.core.jobs.finished import retry_job
from app.core.jobs.requests.cluster import ClusterCreate
from app.core.platform.tables import Image, Job
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key
from app.core.storage.local import LocalStorage
from temi.backbones.catalog import DEFAULT_BACKBONE
from tests.conftest import MakeSettings
from tests.images import jpeg_bytes, zip_of
from tests.waiting import wait_until
from tests.worker.conftest import AddIngest
from tests.worker.job_steps import PICTURES, create, log_of
from tests.worker.supervision.test_job_supervisor import _children, job_row
from tests.worker.supervision.test_shard_supervisor import Offer, shards
from tests.worker.supervision.test_shard_supervisor import offer as offer  # a fixture
from tests.worker.tiny import add_dataset
from worker.supervision.heartbeat import worker_state
from worker.supervision.job_supervisor import run_waiting_jobs

# Long enough for a busy machine to start a process that imports torch.
STALL_SECONDS = 25.0


@pytest.fixture
def runtime(make_settings: MakeSettings) -> Iterator[Runtime]:
    made = Runtime(
        make_settings(stall_seconds=STALL_SECONDS, lease_seconds=20.0, self_kill_seconds=15.0)
    )
    yield made
    worker_state.excluded_jobs.clear()
    made.db.dispose()
    made.celery.close()


def block_first_image(runtime: Runtime, dataset_id: str) -> Path:
    with runtime.db.read() as session:
        query = select(Image.sha256).where(Image.dataset_id == dataset_id).order_by(Image.position)
        sha256 = session.scalars(query.limit(1)).one()
    return block(runtime, blob_key(sha256))


def block(runtime: Runtime, key: str) -> Path:
    """Puts a pipe without a writer in place of a file."""
    assert isinstance(runtime.storage, LocalStorage)
    path = runtime.storage.resolve(key)
    path.unlink()
    os.mkfifo(path)
    return path


def cluster_request(dataset_id: str) -> ClusterCreate:
    return ClusterCreate(
        dataset_id=dataset_id,
        n_clusters=3,
        backbone=DEFAULT_BACKBONE,
        precision="float32",
        seed=0,
        n_heads=2,
        steps=20,
    )


def test_a_hung_stage_ends_as_stalled_and_the_worker_runs_the_next_job(
    runtime: Runtime, add_ingest: AddIngest
) -> None:
    dataset_id = add_dataset(runtime, PICTURES)
    path = block_first_image(runtime, dataset_id)
    request = cluster_request(dataset_id)
    hung = create(runtime, request)
    healthy = add_ingest(runtime, zip_of({"a.jpg": jpeg_bytes()}))

    assert run_waiting_jobs(runtime, threading.Event()) == 2

    job = job_row(runtime, hung.id)
    assert job.status == "failed"
    assert job.error is not None
    assert job.error["code"] == "stalled"
    assert "in the stage embed" in job.error["detail"]
    assert "TEMI_STALL_SECONDS" in job.error["detail"]
    assert (job.fence, job.crashes) == (1, 0)  # it was not queued again
    assert any("Failed with stalled" in line for line in log_of(runtime, hung))
    assert _children() == []
    assert job_row(runtime, healthy.id).status == "succeeded"

    path.unlink()
    runtime.storage.write(
        path.relative_to(runtime.settings.blob_dir.absolute()).as_posix(), PICTURES[0]
    )
    with runtime.db.write() as session:
        retry_job(session, runtime.storage, "default", hung.id)
    patient = Runtime(runtime.settings.model_copy(update={"stall_seconds": 600.0}))
    run_waiting_jobs(patient, threading.Event())
    assert job_row(runtime, hung.id).status == "succeeded"
    patient.db.dispose()


def test_a_hung_shard_process_is_killed_and_its_shard_released(
    runtime: Runtime, offer: Offer
) -> None:
    job = offer()
    block(runtime, "embeddings/test/plan.json")
    thread = threading.Thread(target=run_waiting_jobs, args=(runtime, threading.Event()))
    thread.start()
    try:
        wait_until(lambda: worker_state.excluded_jobs == {job.id})
    finally:
        thread.join(10 * STALL_SECONDS)
    assert not thread.is_alive()
    assert _children() == []
    first = shards(runtime)[0]
    assert (first.fence, first.lease_until, first.crashes, first.done_at) == (1, 0.0, 1, None)
    with runtime.db.read() as session:
        assert session.get_one(Job, job.id).status == "running"  # its own worker still holds it
