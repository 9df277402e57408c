"""A request for a map of a dataset."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests.base import JobRequest, get_ready_dataset
from app.core.models.backbones import check_backbone_name
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.storage.keys import job_folder

_MIN_IMAGES = 3


@dataclass(frozen=True, kw_only=True)
class MapRequest(JobRequest):
    dataset_id: str
    backbone: str
    precision: str
    perplexity: float
    seed: int

    def check(self, settings: Settings) -> None:
        check_backbone_name(self.backbone, settings.weights_dir)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = get_ready_dataset(session, tenant, self.dataset_id)
        if dataset.image_count < _MIN_IMAGES:
            raise InvalidRequest.field(
                "dataset_id",
                f"a map needs at least {_MIN_IMAGES} images, not {dataset.image_count}",
            )
        config = {
            "backbone": self.backbone,
            "precision": self.precision,
            "perplexity": self.perplexity,
            "seed": self.seed,
        }
        return create_job(
            session, tenant=tenant, kind="map", dataset=dataset, config=config, request=self
        )


def map_key(job_id: str) -> str:
    """The file that the job leaves: Arrow, with image_id, x and y."""
    return f"{job_folder(job_id)}/map.arrow"
