"""Ingest jobs. They have no request model: an upload or a source starts them."""

from typing import Any

from sqlalchemy.orm import Session

from app.core.datasets.rows import check_unused, get_dataset
from app.core.jobs.lifecycle import JobOptions, create_job
from app.core.platform.tables import Dataset, Job
from app.core.storage.keys import listing_key


def create_ingest_job(
    session: Session,
    *,
    tenant: str,
    dataset: Dataset,
    source: dict[str, Any],
    request: JobOptions | None = None,
) -> Job:
    """The dataset must be locked and unused. Its status keeps others from changing it."""
    dataset.status = "ingesting"
    config = {"source": source, "first_position": dataset.end_position}
    return create_job(
        session, tenant=tenant, kind="ingest", dataset=dataset, config=config, request=request
    )


def get_unused_dataset(session: Session, tenant: str, dataset_id: str) -> Dataset:
    """Returns the dataset, locked, if no job uses it, so that its images may change."""
    dataset = get_dataset(session, tenant, dataset_id, lock=True)
    check_unused(session, dataset)
    return dataset


def upload_keys(job: Job) -> list[str]:
    """Returns the keys of the upload and of the source's listing, not needed after the ingest."""
    uploaded = job.config["source"].get("key")
    return [*([uploaded] if uploaded else []), listing_key(job.id)]
