"""Requests that bring images: checked as far as can be known, then one commit makes the job."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.routes.jobs import accepted
from app.api.routes.uploads import Received, receive
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
"""The locked and unused dataset that the images go to; the text is the name of a new one."""


@dataclass(frozen=True)
class Ingest:
    runtime: Runtime
    tenant: str
    key: str | None  # Idempotency-Key
    target: str  # what the request is about, so that no key is used for two things


@dataclass(frozen=True, kw_only=True)
class IngestOptions:
    """How the images are to be taken in: from the query, or from the body if it is JSON."""

    labels_from: str = "none"
    priority: int = 0
    webhook_url: str | None = None
    name: str = ""


def query_options(
    labels_from: Annotated[schemas.LabelsFrom, Query()] = "none",
    priority: Annotated[
        int, Query(ge=-100, le=100, description="Higher runs sooner, among one's own.")
    ] = 0,
    webhook_url: Annotated[
        str | None, Query(max_length=2000, description="Told, signed, when the job ends.")
    ] = None,
) -> IngestOptions:
    return IngestOptions(labels_from=labels_from, priority=priority, webhook_url=webhook_url)


WishesDep = Annotated[IngestOptions, Depends(query_options)]


async def start_ingest(
    ingest: Ingest,
    http: tuple[Request, Response],
    schema: type[schemas.ImagesCreate],
    get_dataset: GetDataset,
    wishes: IngestOptions,
) -> schemas.Job:
    request, response = http
    with idempotency.in_flight(ingest.tenant, ingest.key):
        received = await receive(request, ingest.runtime, schema)
        if received.request is not None:
            wishes = IngestOptions(**received.request.model_dump(exclude={"source"}))
        received.source["labels_from"] = wishes.labels_from
        job = await run_in_threadpool(_accept, ingest, received, wishes, get_dataset)
    accepted(response, job)
    return job


def _accept(
    ingest: Ingest, received: Received, wishes: IngestOptions, get_dataset: GetDataset
) -> schemas.Job:
    """Dataset, job and idempotency key in one commit; without it what was sent is dropped."""
    runtime, kept = ingest.runtime, False

    def create(session: Session) -> dict[str, Any]:
        check_open_jobs(session, ingest.tenant, runtime.settings)
        dataset = get_dataset(session, wishes.name)
        source = _with_upload(session, ingest, received.source)
        row = create_ingest_job(
            session, tenant=ingest.tenant, dataset=dataset, source=source, request=wishes
        )
        return schemas.Job.of(row).model_dump(mode="json")

    try:
        check_webhook_url(runtime.settings, wishes.webhook_url)
        if received.source["type"] == "upload":
            _check_upload(ingest, received.source["upload_id"])
        check_source(runtime.settings, runtime.storage, received.source)
        answer, kept = idempotency.answer_once(
            runtime.db, ingest.tenant, ingest.key, _request_hash(ingest, received, wishes), create
        )
    finally:
        if not kept and received.key is not None:
            runtime.storage.delete(received.key)
    job = schemas.Job.model_validate(answer)
    if kept:
        runtime.notifier.notify(job.id, job.kind)
    return job


def _check_upload(ingest: Ingest, upload_id: str) -> None:
    """Before the transaction, which is not to wait for a store."""
    runtime = ingest.runtime
    try:
        if key := store_upload(runtime.db, runtime.uploads, ingest.tenant, upload_id):
            check_archive(runtime.storage.path(key), runtime.archive_limits)
    except ArchiveRejected:
        delete_upload(
            runtime.db, runtime.uploads, ingest.tenant, upload_id
        )  # its bytes will never be of use
        raise


def _with_upload(session: Session, ingest: Ingest, source: dict[str, Any]) -> dict[str, Any]:
    """A finished upload is an archive like any other, once nobody else can take it."""
    if source["type"] != "upload":
        return source
    key = use_upload(session, ingest.tenant, source["upload_id"])
    return source | {"type": "archive", "key": key}


def _request_hash(ingest: Ingest, received: Received, wishes: IngestOptions) -> str:
    parts = [ingest.target, received.digest, asdict(wishes)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
