"""A request to assign a whole dataset to the clusters of a model."""

from dataclasses import dataclass

from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests.base import JobRequest, get_ready_dataset
from app.core.models import resolve
from app.core.platform.tables import Job


@dataclass(frozen=True, kw_only=True)
class PredictRequest(JobRequest):
    model: str
    dataset_id: str

    def create(self, session: Session, tenant: str) -> Job:
        model, version = resolve(session, tenant, self.model, share=True)
        dataset = get_ready_dataset(session, tenant, self.dataset_id)
        config = {
            "model": {"name": model.name, "version": version.version},
            "backbone": version.manifest["backbone"],
            "precision": version.manifest["precision"],
        }
        return create_job(
            session, tenant=tenant, kind="predict", dataset=dataset, config=config, request=self
        )
