"""A request to train a model's backbone together with its head."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests.base import JobRequest, get_ready_dataset
from app.core.jobs.requests.cluster import check_steps, naming_fields
from app.core.models import check_name, resolve
from app.core.platform.errors import NotFound
from app.core.platform.tables import Dataset, Job
from temi.config import TrainConfig
from temi.finetune.config import FinetuneConfig

_SETTINGS = ("steps", "epochs", "backbone_learning_rate", "head_learning_rate", "seed")


@dataclass(frozen=True, kw_only=True)
class FinetuneRequest(JobRequest):
    model: str
    backbone_learning_rate: float
    head_learning_rate: float
    seed: int
    dataset_id: str | None = None
    model_name: str | None = None
    steps: int | None = None
    epochs: int | None = None

    def create(self, session: Session, tenant: str) -> Job:
        model, version = resolve(session, tenant, self.model, share=True)
        dataset_id = self.dataset_id or version.manifest.get("dataset", {}).get("id")
        if dataset_id is None:
            raise NotFound("The model does not say what it was trained on; give a dataset_id.")
        dataset = get_ready_dataset(session, tenant, dataset_id)
        config = {
            "model": {"name": model.name, "version": version.version},
            "model_name": check_name(self.model_name) if self.model_name else model.name,
            "backbone": version.manifest["backbone"],
            "precision": version.manifest["precision"],
            "finetune": self._config(dataset, version.manifest),
        }
        return create_job(
            session, tenant=tenant, kind="finetune", dataset=dataset, config=config, request=self
        )

    def _config(self, dataset: Dataset, manifest: dict[str, Any]) -> dict[str, Any]:
        with naming_fields():
            trained_with = TrainConfig.from_dict(manifest["config"])
            given = {name: getattr(self, name) for name in _SETTINGS}
            config = FinetuneConfig.of(trained_with, **given)
            resolved = config.resolve(dataset.image_count, trained_with.n_clusters)
        check_steps(resolved.steps, self.epochs)
        return asdict(resolved)
