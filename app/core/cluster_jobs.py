"""A request for a clustering, checked as far as it can be before any work is queued."""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from app.core.datasets import get_dataset
from app.core.errors import DatasetNotReady, InvalidRequest
from app.core.jobs import create_job
from app.core.registry import check_name, slug
from app.core.tables import Dataset, Job
from temi.catalog import check_backbone
from temi.config import TrainConfig
from temi.errors import InvalidConfig, UnknownBackbone, WeightsUnavailable

_TRAIN_SETTINGS = (
    "n_clusters",
    "objective",
    "n_heads",
    "n_neighbors",
    "beta",
    "steps",
    "epochs",
    "seed",
)


@dataclass(frozen=True, kw_only=True)
class ClusterRequest:
    dataset_id: str
    n_clusters: int
    backbone: str
    seed: int
    model_name: str | None = None
    recipe: str = "default"
    objective: str | None = None
    n_heads: int | None = None
    n_neighbors: int | None = None
    beta: float | None = None
    steps: int | None = None
    epochs: int | None = None

    def train_config(self, n_images: int) -> TrainConfig:
        """Every open choice is made now, so that the stored job says exactly what runs."""
        try:
            config = TrainConfig.for_recipe(
                self.recipe, **{name: getattr(self, name) for name in _TRAIN_SETTINGS}
            )
            return config.resolve(n_images)
        except InvalidConfig as error:
            raise InvalidRequest.field(error.field, error.message) from error


def check_request(request: ClusterRequest, weights_dir: Path | None) -> None:
    """What needs no database. Asking timm or open_clip for a name may take seconds."""
    if "@" in request.backbone:  # a path would let a client read the server's disk
        raise InvalidRequest.field(
            "backbone", "put the file into the server's TEMI_WEIGHTS_DIR and leave the path out"
        )
    try:
        check_backbone(request.backbone, weights_dir)
    except (UnknownBackbone, WeightsUnavailable) as error:
        raise InvalidRequest.field("backbone", str(error)) from error


def create_cluster_job(session: Session, tenant: str, request: ClusterRequest) -> Job:
    dataset = get_dataset(session, tenant, request.dataset_id)
    _check_ready(dataset)
    if request.n_neighbors is not None and request.n_neighbors >= dataset.image_count:
        raise InvalidRequest.field(
            "n_neighbors", f"must be below the number of images, {dataset.image_count}"
        )
    name = check_name(request.model_name) if request.model_name else slug(dataset.name)
    config = {
        "model_name": name,
        "backbone": request.backbone,
        "train": request.train_config(dataset.image_count).as_dict(),
    }
    return create_job(session, tenant=tenant, kind="cluster", dataset=dataset, config=config)


def _check_ready(dataset: Dataset) -> None:
    if dataset.status == "ingesting":
        raise DatasetNotReady("The dataset is still being read; wait for its ingest job.")
    if dataset.status != "ready":
        raise DatasetNotReady("The dataset could not be read; see its error and issues.")
