"""Starts an ingest job from a request: receives the body, checks it, commits dataset and job."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.routes.ingest_body import Received, receive
from app.api.routes.jobs import accepted
from app.core.datasets.archives import check_archive
from app.core.datasets.sources.opening import check_source
from app.core.datasets.uploads import delete_upload, store_upload, use_upload
from app.core.jobs.limits import check_open_jobs
from app.core.jobs.requests.ingest import create_ingest_job
from app.core.jobs.webhooks import check_webhook_url
from app.core.platform import idempotency
from app.core.platform.errors import ArchiveRejected
from app.core.platform.tables import Dataset
from app.core.runtime import Runtime

GetDataset = Callable[[Session, str], Dataset]
"""Returns the locked, unused dataset for the images; the text is the name of a new dataset."""


@dataclass(frozen=True)
class Ingest:
    runtime: Runtime
    tenant: str
    key: str | None  # Idempotency-Key
    target: str  # the resource: an idempotency key is valid for one resource


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """From the query, or from the body if it is JSON."""

    labels_from: str = "none"
    priority: int = 0
    webhook_url: str | None = None
    name: str = ""


def query_options(
    labels_from: Annotated[schemas.LabelsFrom, Query()] = "none",
    priority: Annotated[
        int, Query(ge=-100, le=100, description="Your jobs with a higher priority run first.")
    ] = 0,
    webhook_url: Annotated[
        str | None, Query(max_length=2000, description="Gets a signed request when the job ends.")
    ] = None,
) -> IngestOptions:
    return IngestOptions(labels_from=labels_from, priority=priority, webhook_url=webhook_url)


IngestOptionsDep = Annotated[IngestOptions, Depends(query_options)]


async def start_ingest(
    ingest: Ingest,
    http: tuple[Request, Response],
    schema: type[schemas.ImagesCreate],
    get_dataset: GetDataset,
    options: IngestOptions,
) -> schemas.Job:
    request, response = http
    with idempotency.in_flight(ingest.tenant, ingest.key):
        received = await receive(request, ingest.runtime, schema)
        if received.request is not None:
            options = IngestOptions(**received.request.model_dump(exclude={"source"}))
        received.source["labels_from"] = options.labels_from
        job = await run_in_threadpool(_accept, ingest, received, options, get_dataset)
    accepted(response, job)
    return job


def _accept(
    ingest: Ingest, received: Received, options: IngestOptions, get_dataset: GetDataset
) -> schemas.Job:
    """Commits dataset, job and idempotency key together; otherwise deletes the received file."""
    runtime, created = ingest.runtime, False

    def create(session: Session) -> dict[str, Any]:
        check_open_jobs(session, ingest.tenant, runtime.settings)
        dataset = get_dataset(session, options.name)
        source = _with_upload(session, ingest, received.source)
        row = create_ingest_job(
            session, tenant=ingest.tenant, dataset=dataset, source=source, request=options
        )
        return schemas.Job.of(row).model_dump(mode="json")

    try:
        check_webhook_url(runtime.settings, options.webhook_url)
        if received.source["type"] == "upload":
            _check_upload(ingest, received.source["upload_id"])
        check_source(runtime.settings, runtime.storage, received.source)
        answer, created = idempotency.answer_once(
            runtime.db, ingest.tenant, ingest.key, _request_hash(ingest, received, options), create
        )
    finally:
        if not created and received.key is not None:
            runtime.storage.delete(received.key)
    job = schemas.Job.model_validate(answer)
    if created:
        runtime.notifier.notify(job.id, job.kind)
    return job


def _check_upload(ingest: Ingest, upload_id: str) -> None:
    """Runs before the transaction, which must not wait for the storage."""
    runtime = ingest.runtime
    try:
        if key := store_upload(runtime.db, runtime.uploads, ingest.tenant, upload_id):
            check_archive(runtime.storage.path(key), runtime.archive_limits)
    except ArchiveRejected:
        # The upload can never be used.
        delete_upload(runtime.db, runtime.uploads, ingest.tenant, upload_id)
        raise


def _with_upload(session: Session, ingest: Ingest, source: dict[str, Any]) -> dict[str, Any]:
    """Turns a finished upload into an archive that belongs to this ingest."""
    if source["type"] != "upload":
        return source
    key = use_upload(session, ingest.tenant, source["upload_id"])
    return source | {"type": "archive", "key": key}


def _request_hash(ingest: Ingest, received: Received, options: IngestOptions) -> str:
    parts = [ingest.target, received.digest, asdict(options)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
