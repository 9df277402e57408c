"""Single images: metadata, bytes, thumbnail, labels, similar images."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import FileResponse

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.api.http.limits import DownloadLimit
from app.api.http.pagination import ListingDep
from app.api.http.stored_images import (
    CONTENT_RESPONSES,
    THUMBNAIL_RESPONSES,
    IfNoneMatch,
    ThumbnailSize,
    content_response,
    thumbnail_response,
)
from app.core.clusterings.queries import select_image_labels
from app.core.datasets import changes
from app.core.datasets import rows as datasets
from app.core.datasets.neighbors import image_neighbors
from app.core.jobs.requests.ingest import get_unused_dataset
from app.core.platform.tables import Assignment, Image

# Separate threads: requests that wait for a thumbnail do not block other routes.
THUMBNAIL_THREADS = 16
router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/images",
    tags=["images"],
    responses=responses(401, 404, 422, 503),
)


def load_image(
    session: SessionDep, tenant: TenantDep, image_id: Annotated[str, Path(max_length=40)]
) -> Image:
    return datasets.get_image(session, tenant, image_id)


ImageDep = Annotated[Image, Depends(load_image)]


@router.get("/{image_id}", summary="Read the metadata of an image")
def read_image(image: ImageDep) -> schemas.Image:
    """Name, size, format, hash, and the label and metadata of the upload."""
    return schemas.Image.of(image)


@router.get(
    "/{image_id}/content",
    dependencies=[DownloadLimit],
    response_class=FileResponse,
    responses=CONTENT_RESPONSES,
    summary="Download an image",
)
def download_image(
    runtime: RuntimeDep, image: ImageDep, if_none_match: IfNoneMatch = None
) -> Response:
    """The bytes as they were uploaded; range requests are supported."""
    return content_response(runtime, image, if_none_match)


@router.get(
    "/{image_id}/thumbnail",
    response_class=Response,
    responses=THUMBNAIL_RESPONSES,
    summary="Download a thumbnail",
)
async def read_thumbnail(
    request: Request,
    tenant: TenantDep,
    image: ImageDep,
    size: ThumbnailSize = "256",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """WebP, created on the first request and stored."""
    return await thumbnail_response(request, tenant, image, size, if_none_match)


@router.get(
    "/{image_id}/labels",
    response_model=schemas.Page[schemas.ImageLabel],
    summary="List the labels of an image, newest clustering first",
)
def list_image_labels(listing: ListingDep, tenant: TenantDep, image: ImageDep) -> dict[str, Any]:
    """The current label in each clustering of the image, edits included."""
    query = select_image_labels(tenant, image.id)
    key = Assignment.clustering_id
    return listing.page(query, key, schemas.ImageLabel.of, descending=True)


@router.get(
    "/{image_id}/neighbors",
    responses=responses(409, 429),
    summary="Find the most similar images of the dataset",
)
def find_neighbors(
    runtime: RuntimeDep,
    tenant: TenantDep,
    image_id: Annotated[str, Path(max_length=40)],
    limit: Annotated[int, Query(ge=1, le=100, description="Number of images.")] = 24,
) -> schemas.Neighbors:
    """Most similar first, without the image itself, by the features of the dataset's current
    clustering, or else by its newest ones. Fails with `features_missing` if the image has none."""
    found = image_neighbors(runtime.db, runtime.storage, tenant, image_id, limit)
    return schemas.Neighbors(data=[schemas.Neighbor.of(one) for one in found])


@router.delete("/{image_id}", status_code=204, responses=responses(409), summary="Delete an image")
def delete_image(
    runtime: RuntimeDep, tenant: TenantDep, image_id: Annotated[str, Path(max_length=40)]
) -> None:
    """Its bytes are deleted some minutes later, unless another image has the same bytes."""
    with runtime.db.write() as session:
        image = datasets.get_image(session, tenant, image_id)
        dataset = get_unused_dataset(session, tenant, image.dataset_id)
        changes.delete_images(session, dataset, [image_id])
