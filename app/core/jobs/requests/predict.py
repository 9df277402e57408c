"""The request to assign all images of a dataset to the clusters of a model."""

from typing import Literal

from pydantic import ConfigDict
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests import base
from app.core.models import resolve
from app.core.platform.tables import Job


class PredictCreate(base.JobCreateBase):
    """Assign all images of a dataset to the clusters of a model; creates a clustering."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"kind": "predict", "model": "animals", "dataset_id": base.EXAMPLE_DATASET_ID}
            ]
        }
    )

    kind: Literal["predict"]
    model: base.ModelReference
    dataset_id: base.DatasetId

    def create(self, session: Session, tenant: str) -> Job:
        model, version = resolve(session, tenant, self.model, share=True)
        dataset = base.get_ready_dataset(session, tenant, self.dataset_id)
        config = {
            "model": {"name": model.name, "version": version.version},
            "backbone": version.manifest["backbone"],
            "precision": version.manifest["precision"],
        }
        return create_job(
            session, tenant=tenant, kind=self.kind, dataset=dataset, config=config, request=self
        )
