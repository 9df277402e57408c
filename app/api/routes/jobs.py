"""Jobs: create, get, list, cancel, retry, delete, logs, curves, events."""

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Path, Query, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.sse import EventSourceResponse, ServerSentEvent
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import (
    IdempotencyKeyHeader,
    RuntimeDep,
    SessionDep,
    TenantDep,
)
from app.api.http.errors import responses
from app.api.http.limits import EventStreamLimit
from app.api.http.pagination import ListingDep
from app.core.jobs import finished as finished_jobs
from app.core.jobs import lifecycle as jobs
from app.core.jobs.kinds import KindName
from app.core.jobs.limits import check_memory, check_open_jobs
from app.core.jobs.queries import select_curve_points, select_jobs, select_log_lines
from app.core.jobs.requests.job_create import JobCreate
from app.core.jobs.requests.preparation import prepare
from app.core.jobs.webhooks import check_webhook_url
from app.core.platform import idempotency
from app.core.platform.db import Database
from app.core.platform.tables import FINAL, Job, JobCurve, JobLog
from app.core.runtime import Runtime
from app.core.storage.deletion.retention import delete_unless_retained

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/jobs",
    tags=["jobs"],
    responses=responses(401, 422, 503),
)
_POLL_SECONDS = 0.5
_EVENT_ID = re.compile(r"[0-9]{1,18}")


def accepted(response: Response, job: schemas.Job) -> None:
    """Sets the headers of a 202 response that starts a job."""
    response.headers["Location"] = f"/v1/jobs/{job.id}"
    response.headers["Retry-After"] = "1"


JobId = Annotated[str, Path(max_length=40)]


def load_job(session: SessionDep, tenant: TenantDep, job_id: JobId) -> Job:
    return jobs.get_job(session, tenant, job_id)


JobDep = Annotated[Job, Depends(load_job)]


@router.post(
    "",
    status_code=202,
    responses=responses(404, 409, 422, 429),
    summary="Create a job",
)
def create_job(
    body: JobCreate,
    response: Response,
    runtime: RuntimeDep,
    tenant: TenantDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.Job:
    """`cluster` embeds the dataset's images, mines neighbors, trains the heads, and registers a
    model and a clustering. Results of earlier jobs on the same images are reused."""
    job = accept_job(runtime, tenant, idempotency_key, body)
    accepted(response, job)
    return job


def accept_job(runtime: Runtime, tenant: str, key: str | None, body: JobCreate) -> schemas.Job:
    request_hash = hashlib.sha256(b"jobs" + body.model_dump_json().encode()).hexdigest()
    check_webhook_url(runtime.settings, body.webhook_url)
    prepared = prepare(body, runtime.settings)

    def create(session: Session) -> dict[str, Any]:
        check_open_jobs(session, tenant, runtime.settings)
        row = prepared.create(session, tenant)
        check_memory(row, runtime.settings)
        return schemas.Job.of(row).model_dump(mode="json")

    with idempotency.in_flight(tenant, key):
        answer, is_new = idempotency.answer_once(runtime.db, tenant, key, request_hash, create)
    job = schemas.Job.model_validate(answer)
    if is_new:
        runtime.notifier.notify(job.id, job.kind)
    return job


@router.get("", response_model=schemas.Page[schemas.Job], summary="List jobs, newest first")
def list_jobs(
    listing: ListingDep,
    tenant: TenantDep,
    kind: Annotated[KindName | None, Query(description="Only those of this kind.")] = None,
    status: Annotated[schemas.JobStatus | None, Query()] = None,
    dataset_id: Annotated[str | None, Query(max_length=40)] = None,
) -> dict[str, Any]:
    """Jobs of your tenant of all kinds, those that upload images included."""
    query = select_jobs(tenant, kind=kind, status=status, dataset_id=dataset_id)
    return listing.page(query, Job.id, schemas.Job.of, descending=True)


@router.get("/{job_id}", responses=responses(404), summary="Read a job")
def read_job(job: JobDep) -> schemas.Job:
    """Status, progress, an estimate of the time left, and the result or the error."""
    return schemas.Job.of(job)


@router.post(
    "/{job_id}:cancel",
    status_code=202,
    responses=responses(404, 409),
    summary="Cancel a job",
)
def cancel_job(runtime: RuntimeDep, tenant: TenantDep, job_id: JobId) -> schemas.Job:
    """A queued job is cancelled at once, a running one within seconds. What it has computed is
    reused by the next job on the same images."""
    with runtime.db.write() as session:
        job = jobs.cancel(session, tenant, job_id)
    return schemas.Job.of(job)


@router.post(
    "/{job_id}:retry",
    status_code=202,
    responses=responses(404, 409, 429),
    summary="Retry a failed or cancelled job",
)
def retry_job(
    response: Response, runtime: RuntimeDep, tenant: TenantDep, job_id: JobId
) -> schemas.Job:
    """Queues the same job again; it resumes from what it has saved. Fails with `not_retryable` if
    the job has succeeded, its dataset has changed since, or its upload was refused and deleted."""
    with runtime.db.write() as session:
        check_open_jobs(session, tenant, runtime.settings)
        row = finished_jobs.retry_job(session, runtime.storage, tenant, job_id)
    runtime.notifier.notify(row.id, row.kind)
    job = schemas.Job.of(row)
    accepted(response, job)
    return job


@router.delete(
    "/{job_id}", status_code=204, responses=responses(404, 409), summary="Delete a finished job"
)
def delete_job(runtime: RuntimeDep, tenant: TenantDep, job_id: JobId) -> None:
    """Deletes the job with its log, curves and intermediate files. Its results (clusterings,
    models, exports) stay."""
    with runtime.db.write() as session:
        leftovers = finished_jobs.delete_job(session, tenant, job_id)
    delete_unless_retained(runtime.db, runtime.storage, leftovers)


@router.get(
    "/{job_id}/logs",
    response_model=schemas.Page[schemas.JobLogLine],
    responses=responses(404),
    summary="List the lines of a job's log, oldest first",
)
def list_job_logs(
    listing: ListingDep,
    job: JobDep,
    after: Annotated[
        int, Query(ge=0, lt=2**31, description="Only lines with a higher number.")
    ] = 0,
) -> dict[str, Any]:
    """Works during and after the run. To follow the log, repeat with `after`."""
    query = select_log_lines(job.id, after=after)
    return listing.page(query, JobLog.number, schemas.JobLogLine.of)


@router.get(
    "/{job_id}/curves",
    response_model=schemas.Page[schemas.JobCurvePoint],
    responses=responses(404),
    summary="List the points of a job's training curves, by step",
)
def list_job_curves(
    listing: ListingDep,
    job: JobDep,
    after: Annotated[int, Query(ge=-1, lt=2**31, description="Only points of later steps.")] = -1,
) -> dict[str, Any]:
    """Loss and other values of the training, while it runs and after it."""
    query = select_curve_points(job.id, after=after)
    return listing.page(query, JobCurve.step, schemas.JobCurvePoint.of)


LastEventId = Annotated[str | None, Header(alias="Last-Event-ID")]


async def check_more_events(job: JobDep, last_event_id: LastEventId = None) -> None:
    """Raises 204 after the last event, so that an `EventSource` does not connect again."""
    if job.status in FINAL and _version_of(last_event_id) >= job.version:
        raise HTTPException(204)


@router.get(
    "/{job_id}/events",
    dependencies=[EventStreamLimit, Depends(check_more_events)],
    response_class=EventSourceResponse,
    responses={
        204: {"description": "The job has ended, and you have its last event"},
        **responses(404),
    },
    summary="Stream the events of a job",
)
async def stream_job_events(
    runtime: RuntimeDep,
    job: JobDep,
    last_event_id: LastEventId = None,
) -> AsyncIterator[ServerSentEvent]:
    """Server-sent events: `progress` while the job runs, `status` when its status changes, each
    with the whole job as data. The stream ends with the job. A client that reconnects with
    `Last-Event-ID` gets only newer events, and 204 if there will be none. The stream also ends
    when this API process stops; reconnect to continue."""
    seen = _version_of(last_event_id)
    status = job.status if seen else None
    row: Job | None = job
    while row is not None:
        if row.version > seen:
            changed = row.status != status
            seen, status = row.version, row.status
            yield ServerSentEvent(
                data=schemas.Job.of(row),
                event="status" if changed else "progress",
                id=str(seen),
                retry=2000,
            )
        if row.status in FINAL or runtime.stopping.is_set():
            return
        await asyncio.sleep(_POLL_SECONDS)
        row = await run_in_threadpool(_reload, runtime.db, job.id)


def _version_of(event_id: str | None) -> int:
    """Returns 0 for a missing or invalid id."""
    return int(event_id) if event_id and _EVENT_ID.fullmatch(event_id) else 0


def _reload(db: Database, job_id: str) -> Job | None:
    with db.read() as session:
        return session.get(Job, job_id)
