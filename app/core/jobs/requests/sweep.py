"""A request to train over several values of one setting."""

import math
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.limits import training_memory
from app.core.jobs.requests.base import JobRequest, get_ready_dataset
from app.core.jobs.requests.cluster import check_neighbor_count, count_trained, naming_fields
from app.core.models.backbones import check_backbone_name
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from temi.config import TrainConfig

_BETAS = (0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
# Each about half as large again as the one before.
_SIZES = (2, 3, 5, 8, 12, 18, 27, 40, 60, 90, 135, 200)
_IMAGES_A_CLUSTER = 5  # fewer have no neighbors of their own to be recognized by
_MOST_CLUSTERS = 25_000
_TRAIN_SETTINGS = ("objective", "n_heads", "n_neighbors", "steps", "seed", "precision")


@dataclass(frozen=True, kw_only=True)
class SweepRequest(JobRequest):
    dataset_id: str
    parameter: str
    backbone: str
    precision: str
    seed: int
    values: list[float] | None = None
    n_clusters: int | None = None
    exclude_duplicates: str = "none"
    objective: str | None = None
    n_heads: int | None = None
    n_neighbors: int | None = None
    beta: float | None = None
    steps: int | None = None

    def check(self, settings: Settings) -> None:
        if self.parameter == "beta" and self.n_clusters is None:
            raise InvalidRequest.field("n_clusters", "is needed where beta is swept")
        if getattr(self, self.parameter) is not None:
            raise InvalidRequest.field(self.parameter, "is what is swept; give its `values`")
        check_backbone_name(self.backbone, settings.weights_dir)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = get_ready_dataset(session, tenant, self.dataset_id)
        n_images = count_trained(session, dataset, self.exclude_duplicates)
        check_neighbor_count(self.n_neighbors, n_images)
        config = {
            "parameter": self.parameter,
            "backbone": self.backbone,
            "precision": self.precision,
            "exclude_duplicates": self.exclude_duplicates,
            "values": (values := self._values(n_images)),
            "train": (train := [self._train_config(value, n_images) for value in values]),
        }
        return create_job(
            session,
            tenant=tenant,
            kind="sweep",
            dataset=dataset,
            config=config,
            request=self,
            memory_bytes=training_memory(train, n_images, self.backbone),
        )

    def _values(self, n_images: int) -> list[float] | list[int]:
        """By rising value, each once."""
        if self.parameter == "beta":
            betas = _BETAS if self.values is None else self.values
            if not all(math.isfinite(beta) and 0.5 < beta <= 1.0 for beta in betas):
                raise InvalidRequest.field("values", "beta must be above 0.5 and at most 1")
            return sorted(set(betas))
        most = min(_MOST_CLUSTERS, n_images)
        if self.values is None:
            fitting = [n for n in _SIZES if n <= n_images // _IMAGES_A_CLUSTER]
            return fitting or [min(2, most)]
        if not all(2 <= value <= most and value == int(value) for value in self.values):
            raise InvalidRequest.field(
                "values", f"n_clusters must be whole numbers from 2 to {most}"
            )
        return sorted({int(value) for value in self.values})

    def _train_config(self, value: float, n_images: int) -> dict[str, Any]:
        given = {name: getattr(self, name) for name in (*_TRAIN_SETTINGS, "n_clusters", "beta")}
        given[self.parameter] = value
        with naming_fields():
            return TrainConfig.for_recipe("default", **given).resolve(n_images).as_dict()
