"""The request for a clustering."""

from typing import Any, Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.limits import training_memory
from app.core.jobs.requests import base
from app.core.jobs.requests.training import (
    check_neighbor_count,
    check_steps,
    config_settings,
    count_training_images,
    refusing_invalid_config,
)
from app.core.models import check_name, slug
from app.core.models.backbones import check_usable_backbone
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.config import TrainConfig


class ClusterCreate(base.JobCreateBase):
    """Cluster the images of a dataset and register the model."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "cluster", "dataset_id": base.EXAMPLE_DATASET_ID, "n_clusters": 8}
            ]
        }
    )

    kind: Literal["cluster"] = "cluster"
    dataset_id: base.DatasetId
    n_clusters: int = Field(ge=2, le=base.MAX_CLUSTERS, description="Number of clusters.")
    model_name: base.ModelName = None
    backbone: base.Backbone = DEFAULT_BACKBONE
    precision: base.Precision = "float32"
    exclude_duplicates: base.ExcludedDuplicates = "none"
    recipe: Literal["default", "paper"] = Field(
        default="default",
        description="`paper` trains as in the paper (50 heads, 200 epochs) and takes many times "
        "as long.",
    )
    objective: base.Objective = None
    select: base.Select = None
    n_heads: base.HeadCount = None
    n_neighbors: base.NeighborCount = None
    beta: base.Beta = None
    steps: base.Steps = None
    epochs: base.Epochs = None
    seed: base.Seed = 0

    def check(self, settings: Settings) -> None:
        check_usable_backbone(self.backbone, settings)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = base.get_ready_dataset(session, tenant, self.dataset_id)
        name = check_name(self.model_name) if self.model_name else slug(dataset.name)
        n_images = count_training_images(session, dataset, self.exclude_duplicates)
        train = self._train_config(n_images)
        config = {
            "model_name": name,
            "backbone": self.backbone,
            "precision": self.precision,
            "exclude_duplicates": self.exclude_duplicates,
            "train": train,
        }
        return create_job(
            session,
            tenant=tenant,
            kind=self.kind,
            dataset=dataset,
            config=config,
            request=self,
            memory_bytes=training_memory([train], n_images, self.backbone),
        )

    def _train_config(self, n_images: int) -> dict[str, Any]:
        check_neighbor_count(self.n_neighbors, n_images)
        with refusing_invalid_config():
            given = config_settings(self, TrainConfig)
            config = TrainConfig.for_recipe(self.recipe, **given).resolve(n_images)
        check_steps(config.steps, self.epochs)
        return config.as_dict()
