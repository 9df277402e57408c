"""What every request for a job has in common."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from app.core.datasets.rows import get_dataset
from app.core.platform.errors import DatasetNotReady, InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Job
from temi.backbones.catalog import check_backbone
from temi.errors import UnknownBackbone, WeightsUnavailable


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    priority: int = 0
    webhook_url: str | None = None

    def check(self, settings: Settings) -> None:
        """What needs no database, and may take seconds."""

    def create(self, session: Session, tenant: str) -> Job:
        """The job's row, with every open choice made, so that it says exactly what will run."""
        raise NotImplementedError


def check_backbone_name(name: str, weights_dir: Path | None) -> None:
    """Asking timm or open_clip for a name may take seconds."""
    if "@" in name:  # a path would let a client read the server's disk
        raise InvalidRequest.field(
            "backbone", "put the file into the server's TEMI_WEIGHTS_DIR and leave the path out"
        )
    try:
        check_backbone(name, weights_dir)
    except (UnknownBackbone, WeightsUnavailable) as error:
        raise InvalidRequest.field("backbone", str(error)) from error


def get_ready_dataset(session: Session, tenant: str, dataset_id: str) -> Dataset:
    """Locked until the end of the transaction: its images do not change under a new job."""
    dataset = get_dataset(session, tenant, dataset_id, lock=True)
    if dataset.status == "ingesting":
        raise DatasetNotReady("The dataset is still being read; wait for its ingest job.")
    if dataset.status != "ready":
        raise DatasetNotReady("The dataset could not be read; see its error and issues.")
    return dataset
