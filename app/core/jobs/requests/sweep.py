"""The request for trainings over several values of one setting."""

import math
from typing import Any, Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.limits import training_memory
from app.core.jobs.requests import base
from app.core.jobs.requests.training import (
    check_neighbor_count,
    config_settings,
    count_training_images,
    resolve_training,
)
from app.core.models.backbones import check_usable_backbone
from app.core.models.names import check_name, slug
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from temi.backbones.catalog import DEFAULT_BACKBONE
from temi.config import TrainConfig

_DEFAULT_BETAS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
_DEFAULT_CLUSTER_COUNTS = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200)  # steps of about 1.5
_MIN_IMAGES_PER_CLUSTER = 5  # a smaller cluster has too few neighbors of its own


class SweepCreate(base.JobCreateBase):
    """Train with several values of one setting, compare the results, and keep the clustering and
    the model of each."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "sweep",
                    "dataset_id": base.EXAMPLE_DATASET_ID,
                    "parameter": "beta",
                    "n_clusters": 8,
                },
                {
                    "kind": "sweep",
                    "dataset_id": base.EXAMPLE_DATASET_ID,
                    "parameter": "n_clusters",
                    "values": [4, 8, 16],
                },
            ]
        }
    )

    kind: Literal["sweep"]
    dataset_id: base.DatasetId
    parameter: Literal["beta", "n_clusters"] = "beta"
    values: list[float] | None = Field(
        default=None, min_length=1, max_length=20, description="By default a grid."
    )
    n_clusters: base.ClusterCount | None = Field(
        default=None, description="Required for a sweep over `beta`."
    )
    model_name: base.ModelName = None
    backbone: base.Backbone = DEFAULT_BACKBONE
    precision: base.Precision = "float32"
    exclude_duplicates: base.ExcludedDuplicates = "none"
    objective: base.Objective = None
    select: base.Select = None
    n_heads: base.HeadCount = None
    n_neighbors: base.NeighborCount = None
    beta: base.Beta = None
    steps: base.Steps = None
    seed: base.Seed = 0

    def check(self, settings: Settings) -> None:
        if self.parameter == "beta" and self.n_clusters is None:
            raise InvalidRequest.field("n_clusters", "is required for a sweep over beta")
        if getattr(self, self.parameter) is not None:
            message = "is the parameter of the sweep; give its values in `values`"
            raise InvalidRequest.field(self.parameter, message)
        check_usable_backbone(self.backbone, settings)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = base.get_ready_dataset(session, tenant, self.dataset_id)
        name = check_name(self.model_name) if self.model_name else slug(dataset.name)
        n_images = count_training_images(session, dataset, self.exclude_duplicates)
        check_neighbor_count(self.n_neighbors, n_images)
        values = self._sorted_values(n_images)
        train = [self._train_config(value, n_images) for value in values]
        config = {
            "parameter": self.parameter,
            "model_name": name,
            "backbone": self.backbone,
            "precision": self.precision,
            "exclude_duplicates": self.exclude_duplicates,
            "values": values,
            "train": train,
        }
        return create_job(
            session,
            tenant=tenant,
            kind=self.kind,
            dataset=dataset,
            config=config,
            request=self,
            memory_bytes=training_memory(train, n_images, self.backbone),
        )

    def _sorted_values(self, n_images: int) -> list[float] | list[int]:
        """Returns the values in ascending order, without repeats."""
        if self.parameter == "beta":
            betas = _DEFAULT_BETAS if self.values is None else self.values
            wrong = [beta for beta in betas if not (math.isfinite(beta) and 0.5 < beta <= 1.0)]
            if wrong:
                raise InvalidRequest.field(
                    "values", f"beta must be above 0.5 and at most 1, not {wrong[0]}"
                )
            return sorted(set(betas))
        most = min(base.MAX_CLUSTERS, n_images)
        if self.values is None:
            largest = n_images // _MIN_IMAGES_PER_CLUSTER
            fitting = [count for count in _DEFAULT_CLUSTER_COUNTS if count <= largest]
            return fitting or [min(2, most)]
        unfit = [value for value in self.values if not (2 <= value <= most and value == int(value))]
        if unfit:
            raise InvalidRequest.field(
                "values", f"n_clusters must be whole numbers from 2 to {most}, not {unfit[0]:g}"
            )
        return sorted({int(value) for value in self.values})

    def _train_config(self, value: float, n_images: int) -> dict[str, Any]:
        given = config_settings(self, TrainConfig) | {self.parameter: value}
        if self.parameter == "beta" and self.select is None:
            given["select"] = "lowest_loss"  # a consensus hides how confident the heads are
        return resolve_training("default", given, n_images)
