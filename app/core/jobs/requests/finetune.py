"""The request to train a model's backbone together with its heads."""

from dataclasses import asdict
from typing import Any, Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests import base
from app.core.jobs.requests.training import check_steps, config_settings, refusing_invalid_config
from app.core.models.names import check_name
from app.core.models.versions import resolve
from app.core.platform.errors import NotFound
from app.core.platform.tables import Dataset, Job
from temi.config import TrainConfig
from temi.finetune.config import FinetuneConfig


class FinetuneCreate(base.JobCreateBase):
    """Train a model's backbone together with its heads on the images; registers a new version."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "finetune", "model": "animals", "epochs": 2}]}
    )

    kind: Literal["finetune"]
    model: base.ModelReference
    dataset_id: base.DatasetId | None = Field(
        default=None, description="By default the dataset that the model was trained on."
    )
    model_name: base.ModelName = None
    steps: base.Steps = None
    epochs: base.Epochs = None
    backbone_learning_rate: float = Field(default=1e-5, gt=0, le=1)
    head_learning_rate: float = Field(default=1e-4, gt=0, le=1)
    seed: base.Seed = 0

    def create(self, session: Session, tenant: str) -> Job:
        model, version = resolve(session, tenant, self.model, share=True)
        dataset_id = self.dataset_id or version.manifest.get("dataset", {}).get("id")
        if dataset_id is None:
            raise NotFound(
                f"The manifest of model {model.name} names no dataset; give a dataset_id."
            )
        dataset = base.get_ready_dataset(session, tenant, dataset_id)
        config = {
            "model": {"name": model.name, "version": version.version},
            "model_name": check_name(self.model_name) if self.model_name else model.name,
            "backbone": version.manifest["backbone"],
            "precision": version.manifest["precision"],
            "finetune": self._finetune_config(dataset, version.manifest),
        }
        return create_job(
            session, tenant=tenant, kind=self.kind, dataset=dataset, config=config, request=self
        )

    def _finetune_config(self, dataset: Dataset, manifest: dict[str, Any]) -> dict[str, Any]:
        with refusing_invalid_config():
            trained_with = TrainConfig.from_dict(manifest["config"])
            config = FinetuneConfig.of(trained_with, **config_settings(self, FinetuneConfig))
            resolved = config.resolve(dataset.image_count, trained_with.n_clusters)
        check_steps(resolved.steps, self.epochs)
        return asdict(resolved)
