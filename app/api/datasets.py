"""Datasets: upload, look, list what could not be read."""

import hashlib
import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.deps import (
    IdempotencyKeyHeader,
    ListingDep,
    RuntimeDep,
    SessionDep,
    TenantDep,
)
from app.api.errors import responses
from app.api.jobs import accepted
from app.api.uploads import Upload, receive_upload
from app.core import datasets, idempotency
from app.core.archives import check_archive
from app.core.job_requests.ingest import create_ingest_job
from app.core.queue import publish_hint
from app.core.runtime import Runtime
from app.core.tables import Dataset, DatasetIssue, Image

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], responses=responses(401, 422, 503))

_UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/zip": {"schema": {"type": "string", "format": "binary"}},
            "application/x-tar": {"schema": {"type": "string", "format": "binary"}},
            "application/gzip": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                            "description": "Images, or exactly one archive.",
                        }
                    },
                }
            },
        },
    }
}


def load_dataset(
    session: SessionDep, tenant: TenantDep, dataset_id: Annotated[str, Path(max_length=40)]
) -> Dataset:
    return datasets.get_dataset(session, tenant, dataset_id)


DatasetDep = Annotated[Dataset, Depends(load_dataset)]


@router.post(
    "",
    status_code=202,
    response_model=schemas.Job,
    responses=responses(409, 413, 422, 507),
    openapi_extra=_UPLOAD_BODY,
    summary="Upload a collection of images",
)
async def create_dataset(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    tenant: TenantDep,
    idempotency_key: IdempotencyKeyHeader = None,
    name: Annotated[str, Query(min_length=1, max_length=200)] = "untitled",
    labels_from: Annotated[
        Literal["none", "folder"],
        Query(description="`folder`: an image's folder is its label. Used for metrics only."),
    ] = "none",
) -> schemas.Job:
    """Send a zip or tar archive as the body, or images in a form. It is streamed to storage and
    read by a worker; the answer is that job. Files that are no images become the dataset's
    issues and do not stop the rest."""
    with idempotency.in_flight(tenant, idempotency_key):
        upload = await receive_upload(request, runtime)
        job = await run_in_threadpool(
            _accept, runtime, tenant, idempotency_key, upload, name, labels_from
        )
    accepted(response, job)
    return job


def _accept(
    runtime: Runtime, tenant: str, key: str | None, upload: Upload, name: str, labels_from: str
) -> schemas.Job:
    """Dataset, job and idempotency key in one commit; without it the upload is dropped."""
    request = json.dumps(["datasets", name, labels_from, upload.sha256])
    request_hash = hashlib.sha256(request.encode()).hexdigest()
    kept = False

    def create(session: Session) -> dict[str, Any]:
        dataset = datasets.create_dataset(session, tenant=tenant, name=name)
        source = {"type": "archive", "key": upload.key, "labels_from": labels_from}
        row = create_ingest_job(session, tenant=tenant, dataset=dataset, source=source)
        return schemas.Job.of(row).model_dump(mode="json")

    try:
        check_archive(runtime.storage.path(upload.key), runtime.archive_limits)
        answer, kept = idempotency.answer_once(runtime.db, tenant, key, request_hash, create)
    finally:
        if not kept:
            runtime.storage.delete(upload.key)
    job = schemas.Job.model_validate(answer)
    if kept:
        publish_hint(runtime.celery, job.id)
    return job


@router.get("", response_model=schemas.Page[schemas.Dataset], summary="List datasets, newest first")
def list_datasets(listing: ListingDep, tenant: TenantDep) -> dict[str, Any]:
    query = select(Dataset).where(Dataset.tenant == tenant)
    return listing.page(query, Dataset.id, schemas.Dataset.of, descending=True)


@router.get("/{dataset_id}", responses=responses(404), summary="Look at a dataset")
def read_dataset(dataset: DatasetDep) -> schemas.Dataset:
    return schemas.Dataset.of(dataset)


@router.get(
    "/{dataset_id}/images",
    response_model=schemas.Page[schemas.Image],
    responses=responses(404, 422),
    summary="List its images in the order of the upload",
)
def list_images(listing: ListingDep, dataset: DatasetDep) -> dict[str, Any]:
    query = select(Image).where(
        Image.dataset_id == dataset.id, Image.position < dataset.end_position
    )
    return listing.page(query, Image.position, schemas.Image.of)


@router.get(
    "/{dataset_id}/issues",
    response_model=schemas.Page[schemas.DatasetIssue],
    responses=responses(404, 422),
    summary="List the files that could not be used, and why",
)
def list_issues(listing: ListingDep, dataset: DatasetDep) -> dict[str, Any]:
    query = select(DatasetIssue).where(DatasetIssue.dataset_id == dataset.id)
    return listing.page(query, DatasetIssue.position, schemas.DatasetIssue.of)
