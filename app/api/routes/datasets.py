"""Datasets: upload, look, add, delete, list what could not be read."""

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.bodies import DATASET_BODY, IMAGES_BODY
from app.api.http.dependencies import (
    IdempotencyKeyHeader,
    ListingDep,
    RuntimeDep,
    SessionDep,
    TenantDep,
)
from app.api.http.errors import responses
from app.api.http.quota import check_room
from app.api.routes.ingest import Ingest, WishesDep, start_ingest
from app.core.datasets import changes, queries
from app.core.datasets import rows as datasets
from app.core.jobs.requests.ingest import get_unused_dataset
from app.core.platform.tables import Dataset, DatasetIssue, Duplicate, Image
from app.core.runtime import Runtime
from app.core.storage.gc.retention import delete_unless_retained

router = APIRouter(
    route_class=GuardedRoute,
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
    dependencies=[Depends(check_room)],
    responses=responses(404, 409, 413, 422, 429, 507),
    openapi_extra=DATASET_BODY,
    summary="Upload a collection of images",
)
async def create_dataset(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    tenant: TenantDep,
    wishes: WishesDep,
    idempotency_key: IdempotencyKeyHeader = None,
    name: Annotated[str, Query(min_length=1, max_length=200)] = "untitled",
) -> schemas.Job:
    """Send an archive as the body, images in a form, a manifest (CSV or JSON lines) that names
    images which the server may read, or JSON that says where they are. A worker reads them; the
    answer is that job. Files that are no images become the dataset's issues and do not stop the
    rest. What the query says is for bodies that are not JSON."""

    def new(session: Session, name: str) -> Dataset:
        return datasets.create_dataset(session, tenant=tenant, name=name)

    return await start_ingest(
        Ingest(runtime, tenant, idempotency_key, "datasets"),
        (request, response),
        schemas.DatasetCreate,
        new,
        replace(wishes, name=name),
    )


@router.post(
    "/{dataset_id}/images",
    status_code=202,
    response_model=schemas.Job,
    dependencies=[Depends(check_room)],
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
    wishes: WishesDep,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.Job:
    """The same bodies as for a new dataset. Only the new images are decoded; until the job has
    succeeded none of them is to be seen, and if it fails the dataset is as it was."""

    def existing(session: Session, _name: str) -> Dataset:
        return get_unused_dataset(session, tenant, dataset_id)

    # A connection of its own: one that is held while a body arrives would be missed elsewhere.
    await run_in_threadpool(_check_exists, runtime, tenant, dataset_id)
    return await start_ingest(
        Ingest(runtime, tenant, idempotency_key, f"datasets/{dataset_id}/images"),
        (request, response),
        schemas.ImagesCreate,
        existing,
        wishes,
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
    """All of them or, if one is not there, none. They leave the clusterings, too."""
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
    """Its images, jobs, clusterings and exports go with it; models that were made from it
    stay."""
    with runtime.db.write() as session:
        dataset = get_unused_dataset(session, tenant, dataset_id)
        leftovers = changes.delete_dataset(session, dataset)
    delete_unless_retained(runtime.db, runtime.storage, leftovers)


@router.get("", response_model=schemas.Page[schemas.Dataset], summary="List datasets, newest first")
def list_datasets(listing: ListingDep, tenant: TenantDep) -> dict[str, Any]:
    query = queries.select_datasets(tenant)
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
    return listing.page(queries.select_images(dataset), Image.position, schemas.Image.of)


@router.get(
    "/{dataset_id}/issues",
    response_model=schemas.Page[schemas.DatasetIssue],
    responses=responses(404, 422),
    summary="List the files that could not be used, and why",
)
def list_issues(listing: ListingDep, dataset: DatasetDep) -> dict[str, Any]:
    query = queries.select_issues(dataset)
    return listing.page(query, DatasetIssue.position, schemas.DatasetIssue.of)


@router.get(
    "/{dataset_id}/duplicates",
    response_model=schemas.Page[schemas.Duplicate],
    responses=responses(404, 422),
    summary="List images that show what an earlier one shows",
)
def list_duplicates(
    listing: ListingDep,
    dataset: DatasetDep,
    kind: Annotated[schemas.DuplicateKind | None, Query(description="By default both.")] = None,
) -> dict[str, Any]:
    """Exact duplicates are known from the upload on, near ones from the first job that has
    compared the images."""
    query = queries.select_duplicates(dataset, kind)
    return listing.page(query, Duplicate.image_id, schemas.Duplicate.of)
