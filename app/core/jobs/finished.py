"""Retrying and deleting jobs that have ended."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.datasets.rows import check_unused, count_rows, get_dataset
from app.core.datasets.skipped import count_skipped
from app.core.jobs.lifecycle import get_job
from app.core.jobs.records import add_log
from app.core.jobs.requests.ingest import upload_keys
from app.core.platform.clock import db_now
from app.core.platform.errors import DatasetInUse, JobUnfinished, NotRetryable
from app.core.platform.tables import FINAL, Dataset, DatasetIssue, Image, Job, SkippedFiles
from app.core.storage import Storage
from app.core.storage.keys import job_folder

_RETRYABLE = (
    "worker_crashed",
    "stalled",
    "storage_full",
    "out_of_memory",
    "internal_error",
    "cancelled",
)


def is_retryable(error: Mapping[str, Any] | None) -> bool:
    """Returns whether a retry may succeed; no error means that the job was cancelled."""
    return error is None or error.get("code") in _RETRYABLE


def retry_job(session: Session, storage: Storage, tenant: str, job_id: str) -> Job:
    """Queues a failed or cancelled job again; it resumes from what is saved."""
    dataset_id = get_job(session, tenant, job_id).dataset_id
    dataset = get_dataset(session, tenant, dataset_id, lock=True)
    # The lock on the dataset keeps others from reopening the job. A transaction that ends an open
    # job has locked it and may wait for the dataset, so do not wait for the lock of an open job.
    _check_finished(get_job(session, tenant, job_id))
    job = get_job(session, tenant, job_id, lock=True)
    if job.status == "succeeded":
        raise NotRetryable("The job has succeeded; create a new one.")
    if job.kind == "ingest":
        _prepare_ingest(session, storage, dataset, job)
    else:
        _check_unchanged(dataset, job)
    _queue_again(job)
    add_log(session, job.id, "Queued again.")
    return job


def delete_job(session: Session, tenant: str, job_id: str) -> list[str]:
    """Deletes the row and its records. Its results (clusterings, models, exports) stay.

    Returns the keys and folders in the storage to delete after the commit.
    """
    job = get_job(session, tenant, job_id, lock=True)
    _check_finished(job)
    session.execute(delete(Job).where(Job.id == job_id))
    return [job_folder(job.id), *(upload_keys(job) if job.kind == "ingest" else [])]


def _check_finished(job: Job) -> None:
    if job.status not in FINAL:
        raise JobUnfinished(f"The job is {job.status}; wait until it has ended, or cancel it.")


def _check_unchanged(dataset: Dataset, job: Job) -> None:
    if dataset.status != "ready":
        raise NotRetryable("The dataset is not ready; wait for its ingest job.")
    # An export reads a revision of a clustering, which does not depend on the dataset's images.
    if job.kind != "export" and dataset.fingerprint != job.dataset_fingerprint:
        raise NotRetryable("The dataset's images have changed since; create a new job.")


def _prepare_ingest(session: Session, storage: Storage, dataset: Dataset, job: Job) -> None:
    """Restores the dataset to its state before the ingest."""
    first = job.config["first_position"]
    key = job.config["source"].get("key")
    if key is not None and not storage.exists(key):
        raise NotRetryable("The upload has been deleted; send the images again.")
    try:
        check_unused(session, dataset)
    except DatasetInUse as error:
        raise NotRetryable(error.detail) from error
    later = select(Image.id).where(Image.dataset_id == dataset.id, Image.position >= first)
    if session.scalar(later.limit(1)) is not None:
        raise NotRetryable("The dataset has new images since; send the missing images again.")
    session.execute(
        delete(DatasetIssue).where(
            DatasetIssue.dataset_id == dataset.id, DatasetIssue.position >= first
        )
    )
    session.execute(
        delete(SkippedFiles).where(
            SkippedFiles.dataset_id == dataset.id, SkippedFiles.first_position >= first
        )
    )
    dataset.issue_count = count_rows(session, dataset.id)[2]
    dataset.skipped = count_skipped(session, dataset.id)
    dataset.status, dataset.error = "ingesting", None
    job.config = {**job.config, "first_position": dataset.end_position}


def _queue_again(job: Job) -> None:
    job.status = "queued"
    job.queued_at = db_now()
    job.crashes = job.notifications = 0
    job.notify_at = job.lease_until = 0.0
    job.stage = job.rate = job.worker = None
    job.completed = job.total = job.failed = job.skipped = 0
    job.timings, job.result, job.error = {}, None, None
    job.started_at = job.finished_at = None
    job.version += 1
