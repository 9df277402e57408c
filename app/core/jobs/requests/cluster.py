"""A request for a clustering."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.limits import training_memory
from app.core.jobs.requests.base import JobRequest, get_ready_dataset
from app.core.models import check_name, slug
from app.core.models.backbones import check_backbone_name
from app.core.platform.errors import InvalidRequest
from app.core.platform.settings import Settings
from app.core.platform.tables import Dataset, Image, Job
from temi.config import TrainConfig
from temi.errors import InvalidConfig

MOST_STEPS = 1_000_000  # twice the paper's longest run, 200 epochs of ImageNet
_TRAIN_SETTINGS = (
    "n_clusters",
    "objective",
    "n_heads",
    "n_neighbors",
    "beta",
    "steps",
    "epochs",
    "seed",
    "precision",
)


@dataclass(frozen=True, kw_only=True)
class ClusterRequest(JobRequest):
    dataset_id: str
    n_clusters: int
    backbone: str
    precision: str
    seed: int
    model_name: str | None = None
    exclude_duplicates: str = "none"
    recipe: str = "default"
    objective: str | None = None
    n_heads: int | None = None
    n_neighbors: int | None = None
    beta: float | None = None
    steps: int | None = None
    epochs: int | None = None

    def check(self, settings: Settings) -> None:
        check_backbone_name(self.backbone, settings.weights_dir)

    def create(self, session: Session, tenant: str) -> Job:
        dataset = get_ready_dataset(session, tenant, self.dataset_id)
        name = check_name(self.model_name) if self.model_name else slug(dataset.name)
        n_images = count_trained(session, dataset, self.exclude_duplicates)
        config = {
            "model_name": name,
            "backbone": self.backbone,
            "precision": self.precision,
            "exclude_duplicates": self.exclude_duplicates,
            "train": (train := self.train_config(n_images)),
        }
        return create_job(
            session,
            tenant=tenant,
            kind="cluster",
            dataset=dataset,
            config=config,
            request=self,
            memory_bytes=training_memory([train], n_images, self.backbone),
        )

    def train_config(self, n_images: int) -> dict[str, Any]:
        check_neighbor_count(self.n_neighbors, n_images)
        given = {name: getattr(self, name) for name in _TRAIN_SETTINGS}
        with naming_fields():
            config = TrainConfig.for_recipe(self.recipe, **given).resolve(n_images)
        check_steps(config.steps, self.epochs)
        return config.as_dict()


@contextmanager
def naming_fields() -> Iterator[None]:
    """What `temi` refuses is a mistake in the request."""
    try:
        yield
    except InvalidConfig as error:
        raise InvalidRequest.field(error.field, error.message) from error


def check_steps(steps: int | None, epochs: int | None) -> None:
    """Epochs of a large dataset may mean far more steps than could be asked for as such."""
    if epochs is not None and steps is not None and steps > MOST_STEPS:
        raise InvalidRequest.field(
            "epochs",
            f"mean {steps:,} steps of this dataset; at most {MOST_STEPS:,} are allowed",
        )


def count_trained(session: Session, dataset: Dataset, exclude_duplicates: str) -> int:
    """Images to train on, as far as it can be known: near duplicates are yet to be found."""
    if exclude_duplicates == "none":
        return dataset.image_count
    different = select(func.count(Image.sha256.distinct()))
    return session.scalar(different.where(Image.dataset_id == dataset.id)) or 0


def check_neighbor_count(n_neighbors: int | None, n_images: int) -> None:
    if n_neighbors is not None and n_neighbors >= n_images:
        raise InvalidRequest.field("n_neighbors", f"must be below the number of images, {n_images}")
