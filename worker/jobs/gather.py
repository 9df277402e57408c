"""Gather jobs: group the images that a version has refused, and propose the groups."""

import time

from sqlalchemy.orm import Session

from app.core.gathering.grouping import Proposed, read_refused, write_proposals
from app.core.jobs.lifecycle import Progress, finish
from app.core.jobs.webhooks import add_proposal_delivery
from app.core.models.files import ModelFiles, load_detector
from app.core.models.versions import get_model, get_version
from app.core.platform.tables import ModelVersion
from temi.gathering import gather, gathering_radius
from worker.context import JobContext


def run_gather(context: JobContext) -> None:
    started, runtime = time.monotonic(), context.runtime
    with runtime.db.read() as session:
        version = _version(context, session)
        refused = read_refused(session, version)
    context.start_progress("gather", total=len(refused.ids))
    files = ModelFiles.of(version.folder, version.files, version.manifest)
    radius = gathering_radius(load_detector(files, runtime.storage))
    with context.computing():
        groups = gather(refused.features, radius)
    context.record_timing("gather", time.monotonic() - started, skipped=False)
    with context.transaction() as session:
        version = _version(context, session)
        found = write_proposals(session, context.job.tenant, version, refused, groups, radius)
        _finish(context, session, found, len(refused.ids))


def _version(context: JobContext, session: Session) -> ModelVersion:
    named = context.job.config["model"]
    model = get_model(session, context.job.tenant, named["name"])
    return get_version(session, model, named["version"])


def _finish(context: JobContext, session: Session, found: Proposed, count: int) -> None:
    model = context.job.config["model"]
    finish(
        session,
        context.job.id,
        context.fence,
        status="succeeded",
        result={
            "model": model,
            "images": count,
            "proposals": found.open,
            "new_proposals": [proposal.id for proposal in found.new],
            "dismissed_images": found.dismissed,
        },
        progress=Progress("gather", count, count),
    )
    url = context.job.webhook_url or context.runtime.settings.proposal_webhook_url
    add_proposal_delivery(session, context.job, url, model, found.new)
