"""Jobs that have ended: retried or deleted."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest
from sqlalchemy import func, select, update

from app.core.jobs import lifecycle as jobs
from app.core.jobs.finished import delete_job, is_retryable, retry_job
from app.core.jobs.lifecycle import Progress
from app.core.jobs.records import add_curve
from app.core.platform.errors import JobFinished, JobUnfinished, NotFound, NotRetryable
from app.core.platform.ids import new_id
from app.core.platform.tables import (
    Dataset,
    DatasetIssue,
    Image,
    Job,
    JobCurve,
    JobLog,
    WebhookDelivery,
)
from app.core.runtime import Runtime
from app.core.storage.deletion.retention import delete_unless_retained
from tests.core.conftest import MakeJob
from tests.core.job_steps import cancel_job, claim_job, end_job, reload_job, send_heartbeat

CRASHED = {"code": "worker_crashed", "detail": "It died."}


def _retry(runtime: Runtime, job: Job, tenant: str = "t") -> Job:
    with runtime.db.write() as session:
        return retry_job(session, runtime.storage, tenant, job.id)


def _delete(runtime: Runtime, job: Job, tenant: str = "t") -> None:
    with runtime.db.write() as session:
        leftovers = delete_job(session, tenant, job.id)
    delete_unless_retained(runtime.db, runtime.storage, leftovers)


def _set_dataset(runtime: Runtime, job: Job, **values: Any) -> None:
    with runtime.db.write() as session:
        session.execute(update(Dataset).where(Dataset.id == job.dataset_id).values(**values))


def _fail(runtime: Runtime, job: Job) -> None:
    claimed = claim_job(runtime, job)
    assert claimed is not None
    send_heartbeat(runtime, job, claimed.fence, Progress("embed", 3, 9, failed=1, rate=2.0))
    with runtime.db.write() as session:
        jobs.record_timing(session, job.id, claimed.fence, "embed", 1.0, skipped=False)
        jobs.finish(session, job.id, claimed.fence, status="failed", error=CRASHED)


@pytest.fixture
def failed(any_runtime: Runtime, make_job: MakeJob) -> Job:
    """A failed cluster job whose dataset has not changed."""
    job = make_job()
    _set_dataset(any_runtime, job, status="ready")
    _fail(any_runtime, job)
    return job


@pytest.fixture
def failed_ingest(any_runtime: Runtime, make_job: MakeJob) -> Job:
    """A failed ingest with an issue at position 3."""
    job = make_job("ingest")
    any_runtime.storage.write("uploads/up_1", b"archive")
    with any_runtime.db.write() as session:
        config = {"source": {"key": "uploads/up_1"}, "first_position": 0}
        session.execute(update(Job).where(Job.id == job.id).values(config=config))
        session.add(_issue(job, 3))
    _fail(any_runtime, job)
    return job


def _issue(job: Job, position: int) -> DatasetIssue:
    return DatasetIssue(
        id=new_id("iss"),
        dataset_id=job.dataset_id,
        position=position,
        name="x",
        code="c",
        detail="",
    )


def test_a_failed_job_is_queued_again(any_runtime: Runtime, failed: Job) -> None:
    before = reload_job(any_runtime, failed)
    again = _retry(any_runtime, failed)
    assert reload_job(any_runtime, failed).version == before.version + 1
    assert (again.status, again.crashes, again.result, again.error) == ("queued", 0, None, None)
    assert (again.stage, again.completed, again.total, again.failed) == (None, 0, 0, 0)
    assert (again.rate, again.timings) == (None, {})
    assert (again.started_at, again.finished_at) == (None, None)
    claimed = claim_job(any_runtime, failed)
    assert claimed is not None
    assert claimed.fence == before.fence + 1  # the fence of the first attempt stays invalid
    end_job(any_runtime, failed, claimed.fence)
    assert reload_job(any_runtime, failed).status == "succeeded"


def test_only_one_of_concurrent_retries_succeeds(any_runtime: Runtime, failed: Job) -> None:
    def attempt(_: int) -> bool:
        try:
            return _retry(any_runtime, failed).status == "queued"
        except JobUnfinished:
            return False

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(attempt, range(6))) == 1


def test_concurrent_cancel_and_retry_do_not_deadlock(
    any_runtime: Runtime, failed_ingest: Job
) -> None:
    def retry(_: int) -> None:
        with suppress(JobUnfinished):
            _retry(any_runtime, failed_ingest)

    def cancel(_: int) -> None:
        with suppress(JobFinished):
            cancel_job(any_runtime, failed_ingest)

    with ThreadPoolExecutor(6) as pool:
        for _ in range(5):
            list(pool.map(lambda n: (retry, cancel)[n % 2](n), range(12)))
    assert reload_job(any_runtime, failed_ingest).status in ("queued", "cancelled")


def test_a_cancelled_job_is_queued_again(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    _set_dataset(any_runtime, job, status="ready")
    cancel_job(any_runtime, job)
    assert _retry(any_runtime, job).status == "queued"


@pytest.mark.parametrize("status", ["queued", "running", "cancelling"])
def test_an_open_job_is_neither_retried_nor_deleted(
    any_runtime: Runtime, make_job: MakeJob, status: str
) -> None:
    job = make_job()
    if status != "queued":
        claim_job(any_runtime, job)
    if status == "cancelling":
        cancel_job(any_runtime, job)
    with pytest.raises(JobUnfinished, match=status):
        _retry(any_runtime, job)
    with pytest.raises(JobUnfinished, match=status):
        _delete(any_runtime, job)
    assert reload_job(any_runtime, job).status == status


def test_a_succeeded_job_is_not_retried(any_runtime: Runtime, make_job: MakeJob) -> None:
    job = make_job()
    claim_job(any_runtime, job)
    end_job(any_runtime, job, 1)
    with pytest.raises(NotRetryable, match="succeeded"):
        _retry(any_runtime, job)


@pytest.mark.parametrize("values", [{"fingerprint": "ff" * 32}, {"status": "ingesting"}])
def test_a_dataset_that_changed_needs_a_new_job(
    any_runtime: Runtime, failed: Job, values: dict[str, str]
) -> None:
    _set_dataset(any_runtime, failed, **values)
    with pytest.raises(NotRetryable, match="dataset"):
        _retry(any_runtime, failed)
    assert reload_job(any_runtime, failed).status == "failed"


def test_an_ingest_reads_its_upload_again(any_runtime: Runtime, failed_ingest: Job) -> None:
    again = _retry(any_runtime, failed_ingest)
    assert again.config["first_position"] == 4  # positions are never used twice
    with any_runtime.db.read() as session:
        dataset = session.get_one(Dataset, failed_ingest.dataset_id)
        issues = session.scalar(select(func.count()).select_from(DatasetIssue))
    assert (dataset.status, dataset.error, dataset.issue_count) == ("ingesting", None, 0)
    assert issues == 0  # the retry will find them again


def test_an_ingest_without_its_upload_cannot_be_retried(
    any_runtime: Runtime, failed_ingest: Job
) -> None:
    any_runtime.storage.delete("uploads/up_1")
    with pytest.raises(NotRetryable, match="upload"):
        _retry(any_runtime, failed_ingest)


def test_an_ingest_into_a_dataset_in_use_cannot_be_retried(
    any_runtime: Runtime, failed_ingest: Job
) -> None:
    with any_runtime.db.write() as session:
        dataset = session.get_one(Dataset, failed_ingest.dataset_id)
        jobs.create_job(session, tenant="t", kind="cluster", dataset=dataset, config={})
    with pytest.raises(NotRetryable, match="uses this dataset"):
        _retry(any_runtime, failed_ingest)


def test_an_ingest_into_a_dataset_that_has_grown_cannot_be_retried(
    any_runtime: Runtime, failed_ingest: Job
) -> None:
    with any_runtime.db.write() as session:
        session.add(
            Image(
                id=new_id("img"),
                dataset_id=failed_ingest.dataset_id,
                position=4,
                name="later",
                sha256="aa" * 32,
                width=1,
                height=1,
                format="PNG",
                bytes=1,
            )
        )
    with pytest.raises(NotRetryable, match="new images"):
        _retry(any_runtime, failed_ingest)
    with any_runtime.db.read() as session:
        assert session.scalar(select(func.count()).select_from(DatasetIssue)) == 1


def test_retryable_errors() -> None:
    assert is_retryable(None)
    assert is_retryable({"code": "storage_full"})
    assert not is_retryable({"code": "archive_invalid"})


def test_a_deleted_job_leaves_no_rows(any_runtime: Runtime, failed_ingest: Job) -> None:
    job, storage = failed_ingest, any_runtime.storage
    storage.write(f"jobs/{job.id}/checkpoint", b"x")
    storage.write("jobs/job_other/checkpoint", b"x")
    with any_runtime.db.write() as session:
        add_curve(session, job.id, 1, {"loss": 1.0})
        session.add(WebhookDelivery(id=new_id("msg"), job_id=job.id, url="u", body={}))
    _delete(any_runtime, job)
    with any_runtime.db.read() as session:
        for table in (Job, JobLog, JobCurve, WebhookDelivery):
            assert session.scalar(select(func.count()).select_from(table)) == 0
        assert session.get(Dataset, job.dataset_id) is not None
    assert not storage.exists(f"jobs/{job.id}/checkpoint")
    assert not storage.exists("uploads/up_1")
    assert storage.exists("jobs/job_other/checkpoint")
    with pytest.raises(NotFound):
        _delete(any_runtime, job)


def test_other_tenants_cannot_retry_or_delete(any_runtime: Runtime, failed: Job) -> None:
    for action in (_retry, _delete):
        with pytest.raises(NotFound):
            action(any_runtime, failed, tenant="other")
