"""The request for a two-dimensional map of a dataset."""

from typing import Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests import base
from app.core.models.backbones import check_usable_backbone
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from app.core.storage.keys import job_folder
from temi.backbones.catalog import DEFAULT_BACKBONE

_MIN_IMAGES = 3


class MapCreate(base.JobCreateBase):
    """Project all images of a dataset to two dimensions; similar images are close together."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "map", "dataset_id": base.EXAMPLE_DATASET_ID}]}
    )

    kind: Literal["map"]
    dataset_id: base.DatasetId
    backbone: base.Backbone = DEFAULT_BACKBONE
    precision: base.Precision = "float32"
    perplexity: float = Field(
        default=30.0,
        ge=2,
        le=200,
        description="About the number of neighbors that stay close to an image.",
    )
    seed: base.Seed = 0

    def check(self, settings: Settings) -> None:
        check_usable_backbone(self.backbone, settings)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = base.get_ready_dataset(session, tenant, self.dataset_id)
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
            session, tenant=tenant, kind=self.kind, dataset=dataset, config=config, request=self
        )


def map_key(job_id: str) -> str:
    """Returns the key of the job's result: an Arrow file with image_id, x and y."""
    return f"{job_folder(job_id)}/map.arrow"
