"""Images from a source into a dataset. What the source is stands in the job's configuration."""

from typing import Any

from sqlalchemy.orm import Session

from app.core.jobs import Wishes, create_job
from app.core.storage import LocalStorage
from app.core.tables import Dataset, Job


def create_ingest_job(
    session: Session,
    *,
    tenant: str,
    dataset: Dataset,
    source: dict[str, Any],
    request: Wishes | None = None,
) -> Job:
    """The dataset must be locked and unused. Until the job ends nobody else may change it."""
    dataset.status = "ingesting"
    config = {"source": source, "first_position": dataset.end_position}
    return create_job(
        session, tenant=tenant, kind="ingest", dataset=dataset, config=config, request=request
    )


def drop_upload(storage: LocalStorage, job: Job) -> None:
    """The archive is of no more use once its ingest has ended."""
    if key := job.config["source"].get("key"):
        storage.delete(key)
