"""A request for a clustering."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.errors import InvalidRequest
from app.core.job_requests.base import JobRequest, check_backbone_name, get_ready_dataset
from app.core.jobs import create_job
from app.core.registry import check_name, slug
from app.core.settings import Settings
from app.core.tables import Dataset, Job
from temi.config import TrainConfig
from temi.errors import InvalidConfig

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
class ClusterRequest(JobRequest):
    dataset_id: str
    n_clusters: int
    backbone: str
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
        config = {
            "model_name": name,
            "backbone": self.backbone,
            "exclude_duplicates": self.exclude_duplicates,
            "train": self.train_config(dataset).as_dict(),
        }
        return create_job(
            session, tenant=tenant, kind="cluster", dataset=dataset, config=config, request=self
        )

    def train_config(self, dataset: Dataset) -> TrainConfig:
        check_neighbor_count(self.n_neighbors, dataset)
        try:
            config = TrainConfig.for_recipe(
                self.recipe, **{name: getattr(self, name) for name in _TRAIN_SETTINGS}
            )
            return config.resolve(dataset.image_count)
        except InvalidConfig as error:
            raise InvalidRequest.field(error.field, error.message) from error


def check_neighbor_count(n_neighbors: int | None, dataset: Dataset) -> None:
    if n_neighbors is not None and n_neighbors >= dataset.image_count:
        raise InvalidRequest.field(
            "n_neighbors", f"must be below the number of images, {dataset.image_count}"
        )
