"""Jobs that are added as by the API, and run in this process."""

from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.datasets.rows import create_dataset
from app.core.jobs.lifecycle import Progress, claim
from app.core.jobs.requests.ingest import create_ingest_job
from app.core.platform.ids import new_id
from app.core.platform.tables import Job
from app.core.runtime import Runtime
from tests.worker.job_steps import tiny as tiny  # a fixture for the tests of this folder
from worker.context import JobContext

AddIngest = Callable[..., Job]
Claimed = Callable[[Runtime, str], JobContext]


@pytest.fixture
def add_ingest() -> AddIngest:
    """Adds a dataset with the given archive as upload, and its ingest job."""

    def add(runtime: Runtime, archive: bytes | Path, labels_from: str = "none") -> Job:
        data = archive if isinstance(archive, bytes) else archive.read_bytes()
        key = f"uploads/{new_id('up')}"
        runtime.storage.write(key, data)
        with runtime.db.write() as session:
            dataset = create_dataset(session, tenant="default", name="test")
            source = {"type": "archive", "key": key, "labels_from": labels_from}
            return create_ingest_job(session, tenant="default", dataset=dataset, source=source)

    return add


@pytest.fixture
def claimed() -> Claimed:
    """Returns the context of a claimed job; its reports are dropped."""

    def take(runtime: Runtime, job_id: str) -> JobContext:
        def ignore(_progress: Progress) -> None:
            pass

        with runtime.db.write() as session:
            job = claim(session, job_id, worker="test", lease_seconds=60)
        assert job is not None
        return JobContext(runtime, job, job.fence, ignore)

    return take
