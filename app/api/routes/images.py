"""Single images: metadata, bytes, thumbnail, labels, similar images."""

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.api.http.limits import DownloadLimit
from app.api.http.negotiation import matches_etag
from app.api.http.pagination import ListingDep
from app.core.clusterings.queries import select_image_labels
from app.core.datasets import changes
from app.core.datasets import rows as datasets
from app.core.datasets.images import MEDIA_TYPES
from app.core.datasets.neighbors import image_neighbors
from app.core.datasets.thumbnails import get_thumbnail
from app.core.jobs.requests.ingest import get_unused_dataset
from app.core.platform.errors import NotFound
from app.core.platform.ids import created_at_of
from app.core.platform.tables import Assignment, Image
from app.core.storage.keys import blob_key

# Separate threads: requests that wait for a thumbnail do not block other routes.
THUMBNAIL_THREADS = 16
router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/images",
    tags=["images"],
    responses=responses(401, 404, 422, 503),
)

_CROSS_ORIGIN = {"Cross-Origin-Resource-Policy": "cross-origin"}  # for labeling tools
# The bytes of an image id never change.
_CACHED_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


def load_image(
    session: SessionDep, tenant: TenantDep, image_id: Annotated[str, Path(max_length=40)]
) -> Image:
    return datasets.get_image(session, tenant, image_id)


ImageDep = Annotated[Image, Depends(load_image)]
IfNoneMatch = Annotated[str | None, Header()]


@router.get("/{image_id}", summary="Read the metadata of an image")
def read_image(image: ImageDep) -> schemas.Image:
    """Name, size, format, hash, and the label and metadata of the upload."""
    return schemas.Image.of(image)


@router.get(
    "/{image_id}/content",
    dependencies=[DownloadLimit],
    response_class=FileResponse,
    responses={
        200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}},
        206: {"description": "The requested range"},
        304: {"description": "Not modified"},
    },
    summary="Download an image",
)
def download_image(
    runtime: RuntimeDep, image: ImageDep, if_none_match: IfNoneMatch = None
) -> Response:
    """The bytes as they were uploaded; range requests are supported."""
    headers = {
        **_CACHED_FOREVER,
        **_CROSS_ORIGIN,
        "ETag": f'"{image.sha256}"',
        # Not the time of the file: tenants with the same image share the file.
        "Last-Modified": formatdate(created_at_of(image.id), usegmt=True),
    }
    if matches_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    with _not_found_if_missing(image):
        path = runtime.storage.path(blob_key(image.sha256))
    return FileResponse(path, media_type=MEDIA_TYPES[image.format], headers=headers)


@router.get(
    "/{image_id}/thumbnail",
    response_class=Response,
    responses={200: {"content": {"image/webp": {}}}, 304: {"description": "Not modified"}},
    summary="Download a thumbnail",
)
async def read_thumbnail(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    image: ImageDep,
    size: Annotated[
        Literal["64", "128", "256", "512"], Query(description="Longer side in pixels.")
    ] = "256",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """WebP, created on the first request and stored."""
    tag = f'"{image.sha256[:32]}-{size}"'
    headers = {**_CACHED_FOREVER, "ETag": tag}
    if matches_etag(if_none_match, tag):
        return Response(status_code=304, headers=headers)
    with _not_found_if_missing(image):
        data = await to_thread.run_sync(
            get_thumbnail,
            runtime.storage,
            runtime.decoders,
            tenant,
            image.sha256,
            int(size),
            limiter=request.app.state.thumbnail_threads,
        )
    return Response(data, media_type="image/webp", headers=headers)


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


@contextmanager
def _not_found_if_missing(image: Image) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"The bytes of image {image.id} are missing from the storage.") from error


@router.delete("/{image_id}", status_code=204, responses=responses(409), summary="Delete an image")
def delete_image(
    runtime: RuntimeDep, tenant: TenantDep, image_id: Annotated[str, Path(max_length=40)]
) -> None:
    """Its bytes are deleted some minutes later, unless another image has the same bytes."""
    with runtime.db.write() as session:
        image = datasets.get_image(session, tenant, image_id)
        dataset = get_unused_dataset(session, tenant, image.dataset_id)
        changes.delete_images(session, dataset, [image_id])
