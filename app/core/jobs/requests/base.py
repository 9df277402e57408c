"""What every request for a job has in common."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.datasets.rows import get_dataset
from app.core.platform.errors import DatasetNotReady
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Job


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    priority: int = 0
    webhook_url: str | None = None

    def check(self, settings: Settings) -> None:
        """What needs no database, and may take seconds."""

    def create(self, session: Session, tenant: str) -> Job:
        """The job's row, with every open choice made, so that it says exactly what will run."""
        raise NotImplementedError


def get_ready_dataset(session: Session, tenant: str, dataset_id: str) -> Dataset:
    """Locked until the end of the transaction: its images do not change under a new job."""
    dataset = get_dataset(session, tenant, dataset_id, lock=True)
    if dataset.status == "ingesting":
        raise DatasetNotReady("The dataset is still being read; wait for its ingest job.")
    if dataset.status != "ready":
        raise DatasetNotReady("The dataset could not be read; see its error and issues.")
    return dataset
