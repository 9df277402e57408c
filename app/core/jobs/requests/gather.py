"""The request to gather the images that a model has refused into proposed groups."""

from typing import Literal

from pydantic import ConfigDict
from sqlalchemy.orm import Session

from app.core.jobs.lifecycle import create_job
from app.core.jobs.requests import base
from app.core.models.files import NOVELTY_FILE
from app.core.models.versions import resolve
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Clustering, Dataset, Job


class GatherCreate(base.JobCreateBase):
    """Gather the images that a model has refused into proposed groups. The service starts such a
    job itself when enough have come; this is for not waiting."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"kind": "gather", "model": "animals"}]}
    )

    kind: Literal["gather"]
    model: base.ModelReference

    def create(self, session: Session, tenant: str) -> Job:
        model, version = resolve(session, tenant, self.model, share=True)
        name = f"{model.name} {version.version}"
        if NOVELTY_FILE not in version.files:
            raise InvalidRequest.field("model", f"{name} has no novelty score: it refuses nothing")
        clustering = session.get(Clustering, version.clustering_id or "")
        if clustering is None:
            raise InvalidRequest.field(
                "model", f"{name} has no clustering here that a new group could be added to"
            )
        return create_job(
            session,
            tenant=tenant,
            kind=self.kind,
            dataset=session.get_one(Dataset, clustering.dataset_id),
            config={"model": {"name": model.name, "version": version.version}},
            request=self,
        )
