"""Checks a request before its job is added, and replaces `auto` by the backbone that it means."""

from dataclasses import dataclass

import structlog
from sqlalchemy.orm import Session

from app.core.jobs.records import add_log
from app.core.jobs.requests.base import JobCreateBase
from app.core.models.backbones import choose_usable_backbone
from app.core.platform.settings import Settings
from app.core.platform.tables import Job
from temi.backbones.auto import AUTO, BackboneChoice

log = structlog.get_logger()


@dataclass(frozen=True)
class PreparedRequest:
    request: JobCreateBase
    choice: BackboneChoice | None = None  # if `auto` was asked for

    def create(self, session: Session, tenant: str) -> Job:
        """Adds the job's row. Its configuration has the chosen name, so that a retry, a clone or a
        prediction never chooses again."""
        job = self.request.create(session, tenant)
        if self.choice is not None:
            add_log(session, job.id, self.choice.reason)
            log.info(
                "backbone_chosen",
                job_id=job.id,
                backbone=self.choice.name,
                weights=self.choice.weights,
                too_large=list(self.choice.too_large),
            )
        return job


def prepare(request: JobCreateBase, settings: Settings) -> PreparedRequest:
    """Reads the disk, and may take seconds: call it outside of a transaction."""
    if getattr(request, "backbone", None) != AUTO:
        request.check(settings)
        return PreparedRequest(request)
    choice = choose_usable_backbone(settings)
    chosen = request.model_copy(update={"backbone": choice.name})
    chosen.check(settings)
    return PreparedRequest(chosen, choice)
