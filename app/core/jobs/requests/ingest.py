"""Images from a source into a dataset. What the source is stands in the job's configuration."""

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
    """The dataset must be locked and unused. Until the job ends nobody else may change it."""
    dataset.status = "ingesting"
    config = {"source": source, "first_position": dataset.end_position}
    return create_job(
        session, tenant=tenant, kind="ingest", dataset=dataset, config=config, request=request
    )


def get_unused_dataset(session: Session, tenant: str, dataset_id: str) -> Dataset:
    """Locked until the end of the transaction, and no job works on it: its images may change."""
    dataset = get_dataset(session, tenant, dataset_id, lock=True)
    check_unused(session, dataset)
    return dataset


def upload_keys(job: Job) -> list[str]:
    """What was sent, and what was found: of no more use once the ingest has ended."""
    sent = job.config["source"].get("key")
    return [*([sent] if sent else []), listing_key(job.id)]
