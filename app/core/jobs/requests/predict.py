"""The request to assign all images of a dataset to the clusters of a model."""

from typing import Literal

from pydantic import ConfigDict, Field
from sqlalchemy.orm import Session

from app.core.clusterings.extension import find_extendable
from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests import base
from app.core.models.files import NOVELTY_FILE
from app.core.models.versions import resolve
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Job


class PredictCreate(base.JobCreateBase):
    """Assign the images of a dataset to the clusters of a model."""

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
    extend: bool = Field(
        default=True,
        description="If the dataset has a clustering by this version, add the images that it lacks "
        "to it and keep all edits; the current clustering is preferred. False: create a new one.",
    )

    false_alarm_rate: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Exclude images that are unlike those of the training; this share of known "
        "images is excluded by mistake. By default every image gets a cluster.",
        examples=[0.01],
    )

    def create(self, session: Session, tenant: str) -> Job:
        model, version = resolve(session, tenant, self.model, share=True)
        dataset = base.get_ready_dataset(session, tenant, self.dataset_id)
        if self.false_alarm_rate is not None and NOVELTY_FILE not in version.files:
            raise InvalidRequest.field(
                "false_alarm_rate",
                f"{model.name} {version.version} has no novelty score; train a new version",
            )
        extended = None
        if self.extend:
            extended = find_extendable(session, dataset, model.name, version.version)
        config = {
            "clustering_id": extended.id if extended else None,
            "model": {"name": model.name, "version": version.version},
            "backbone": version.manifest["backbone"],
            "precision": version.manifest["precision"],
            "false_alarm_rate": self.false_alarm_rate,
        }
        return create_job(
            session, tenant=tenant, kind=self.kind, dataset=dataset, config=config, request=self
        )
