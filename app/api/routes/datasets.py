"""Datasets, their images, issues and duplicates."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
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
from app.api.http.limits import check_quota
from app.api.http.openapi_bodies import DATASET_BODY, IMAGES_BODY
from app.api.http.pagination import ListingDep, PageCursorsDep
from app.api.routes.ingest import Ingest, IngestOptionsDep, start_ingest
from app.core.datasets import changes, queries
from app.core.datasets import rows as datasets
from app.core.jobs.requests.ingest import get_unused_dataset
from app.core.platform.tables import Dataset, DatasetIssue, Duplicate, Image
from app.core.runtime import Runtime
from app.core.storage.deletion.retention import delete_unless_retained

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/datasets",
    tags=["datasets"],
    responses=responses(401, 422, 503),
)


def load_dataset(
    session: SessionDep, tenant: TenantDep, dataset_id: Annotated[str, Path(max_length=40)]
) -> Dataset:
    return datasets.get_dataset(session, tenant, dataset_id)


DatasetDep = Annotated[Dataset, Depends(load_dataset)]


@router.post(
    "",
    status_code=202,
    response_model=schemas.Job,
    dependencies=[Depends(check_quota)],
    responses=responses(404, 409, 413, 422, 429, 507),
    openapi_extra=DATASET_BODY,
    summary="Create a dataset from images",
)
async def create_dataset(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    tenant: TenantDep,
    options: IngestOptionsDep,
    idempotency_key: IdempotencyKeyHeader = None,
    name: Annotated[str, Query(min_length=1, max_length=200)] = "untitled",
) -> schemas.Job:
    """Send an archive, images in a form, a manifest (CSV or JSON lines) of images that the server
    can read, or JSON with their source. The response is the job that reads them. Files that are
    not images are skipped and counted; images that cannot be read become issues of the dataset.
    The query parameters apply to bodies that are not JSON."""

    def new(session: Session, name: str) -> Dataset:
        return datasets.create_dataset(session, tenant=tenant, name=name)

    return await start_ingest(
        Ingest(runtime, tenant, idempotency_key, "datasets"),
        (request, response),
        schemas.DatasetCreate,
        new,
        replace(options, name=name),
    )


@router.post(
    "/{dataset_id}/images",
    status_code=202,
    response_model=schemas.Job,
    dependencies=[Depends(check_quota)],
    responses=responses(404, 409, 413, 422, 429, 507),
    openapi_extra=IMAGES_BODY,
    summary="Add images to a dataset",
)
async def append_images(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    tenant: TenantDep,
    dataset_id: Annotated[str, Path(max_length=40)],
    options: IngestOptionsDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.Job:
    """Takes the same bodies as for a new dataset. The images become visible when the job succeeds;
    if it fails, the dataset is unchanged."""

    def existing(session: Session, _name: str) -> Dataset:
        return get_unused_dataset(session, tenant, dataset_id)

    # Not a SessionDep: it would hold a database connection while the body arrives.
    await run_in_threadpool(_check_exists, runtime, tenant, dataset_id)
    return await start_ingest(
        Ingest(runtime, tenant, idempotency_key, f"datasets/{dataset_id}/images"),
        (request, response),
        schemas.ImagesCreate,
        existing,
        options,
    )


def _check_exists(runtime: Runtime, tenant: str, dataset_id: str) -> None:
    with runtime.db.read() as session:
        datasets.get_dataset(session, tenant, dataset_id)


@router.post(
    "/{dataset_id}/images:delete",
    responses=responses(404, 409, 422),
    summary="Delete images of a dataset",
)
def delete_images(
    body: schemas.ImageDeletion,
    runtime: RuntimeDep,
    tenant: TenantDep,
    dataset_id: Annotated[str, Path(max_length=40)],
) -> schemas.Dataset:
    """Deletes all of them or, if one does not exist, none. They leave the clusterings, too."""
    with runtime.db.write() as session:
        dataset = get_unused_dataset(session, tenant, dataset_id)
        changes.delete_images(session, dataset, body.image_ids)
        session.refresh(dataset)
        return schemas.Dataset.of(dataset)


@router.patch("/{dataset_id}", responses=responses(404, 422), summary="Rename a dataset")
def rename_dataset(
    body: schemas.DatasetPatch,
    runtime: RuntimeDep,
    tenant: TenantDep,
    dataset_id: Annotated[str, Path(max_length=40)],
) -> schemas.Dataset:
    """Models and exports keep the names that they got from it."""
    with runtime.db.write() as session:
        dataset = datasets.get_dataset(session, tenant, dataset_id, lock=True)
        dataset.name = body.name
        session.flush()
        session.refresh(dataset)
        return schemas.Dataset.of(dataset)


@router.delete(
    "/{dataset_id}", status_code=204, responses=responses(404, 409), summary="Delete a dataset"
)
def delete_dataset(
    runtime: RuntimeDep, tenant: TenantDep, dataset_id: Annotated[str, Path(max_length=40)]
) -> None:
    """Deletes its images, jobs, clusterings and exports, too. Models that were trained on it
    stay."""
    with runtime.db.write() as session:
        dataset = get_unused_dataset(session, tenant, dataset_id)
        leftovers = changes.delete_dataset(session, dataset)
    delete_unless_retained(runtime.db, runtime.storage, leftovers)


@router.get("", response_model=schemas.Page[schemas.Dataset], summary="List datasets, newest first")
def list_datasets(
    listing: ListingDep,
    tenant: TenantDep,
    name: Annotated[
        str | None, Query(max_length=200, description="Only datasets of this name.")
    ] = None,
) -> dict[str, Any]:
    """Datasets of your tenant, also those that are still read."""
    query = queries.select_datasets(tenant, name)
    return listing.page(query, Dataset.id, schemas.Dataset.of, descending=True)


@router.get("/{dataset_id}", responses=responses(404), summary="Read a dataset")
def read_dataset(dataset: DatasetDep) -> schemas.Dataset:
    """Its `status` is `ready` when its images have been read."""
    return schemas.Dataset.of(dataset)


@router.get(
    "/{dataset_id}/images",
    response_model=schemas.Page[schemas.Image],
    responses=responses(404, 422),
    summary="List the images of a dataset",
)
def list_images(listing: ListingDep, dataset: DatasetDep) -> dict[str, Any]:
    """In the order of the upload."""
    return listing.page(queries.select_images(dataset), Image.position, schemas.Image.of)


@router.get(
    "/{dataset_id}/images/cursors",
    response_model=schemas.PageCursors,
    responses=responses(404, 422),
    summary="Read the cursors of all pages of a dataset's images",
)
def read_image_cursors(cursors: PageCursorsDep, dataset: DatasetDep) -> dict[str, Any]:
    """A page of the list with `every` as `limit` and one of them as `cursor` can be read without
    those before it."""
    return cursors.of(queries.select_images(dataset), Image.position)


@router.get(
    "/{dataset_id}/issues",
    response_model=schemas.Page[schemas.DatasetIssue],
    responses=responses(404, 422),
    summary="List the issues of a dataset",
)
def list_issues(listing: ListingDep, dataset: DatasetDep) -> dict[str, Any]:
    """Files that could not be read, and why."""
    query = queries.select_issues(dataset)
    return listing.page(query, DatasetIssue.position, schemas.DatasetIssue.of)


@router.get(
    "/{dataset_id}/duplicates",
    response_model=schemas.Page[schemas.Duplicate],
    responses=responses(404, 422),
    summary="List the duplicates of a dataset",
)
def list_duplicates(
    listing: ListingDep,
    dataset: DatasetDep,
    kind: Annotated[schemas.DuplicateKind | None, Query(description="By default both.")] = None,
) -> dict[str, Any]:
    """Images that are the same as an earlier one. Exact duplicates are known after the upload,
    near duplicates after the first job that compares the images."""
    query = queries.select_duplicates(dataset, kind)
    return listing.page(query, Duplicate.image_id, schemas.Duplicate.of)
