"""Images that a model has refused and that are kept: lists, bytes, deletion."""

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
from app.api.routes.models import ModelDep, Name
from app.core.gathering import queries
from app.core.models import registry
from app.core.platform.tables import RefusedImage

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1",
    tags=["models"],
    responses=responses(401, 404, 422, 503),
)
RefusedId = Annotated[
    str,
    Path(
        max_length=40,
        description="The id of a refused image.",
        examples=["rfi_01k9z3m4q5r6s7t8v9w0x1y2z3"],
    ),
]


def load_refused(session: SessionDep, tenant: TenantDep, refused_id: RefusedId) -> RefusedImage:
    return queries.get_refused(session, tenant, refused_id)


RefusedDep = Annotated[RefusedImage, Depends(load_refused)]


@router.get("/models/{name}/refused", summary="Read what is kept of refused images")
def read_refused(runtime: RuntimeDep, session: SessionDep, model: ModelDep) -> schemas.Refused:
    """How many images that the model has refused are kept, and how many may be."""
    settings = runtime.settings
    return schemas.Refused(
        images=queries.count_refused(session, model),
        proposals=queries.count_open_proposals(session, model),
        max_images=settings.keep_refused,
        days=settings.keep_refused_days,
    )


@router.delete(
    "/models/{name}/refused", status_code=204, summary="Delete the refused images of a model"
)
def delete_all_refused(runtime: RuntimeDep, tenant: TenantDep, name: Name) -> None:
    """All that are kept, of every version. Open proposals end with them."""
    with runtime.db.write() as session:
        queries.delete_all_refused(session, registry.get_model(session, tenant, name, lock=True))


@router.get(
    "/models/{name}/refused-images",
    response_model=schemas.Page[schemas.RefusedImage],
    summary="List the refused images of a model, newest first",
)
def list_refused_images(
    listing: ListingDep,
    model: ModelDep,
    proposal_id: Annotated[
        str | None,
        Query(
            max_length=40,
            description="Only the images of this proposal.",
            examples=["prp_01k9z3m4q5r6s7t8v9w0x1y2z3"],
        ),
    ] = None,
) -> dict[str, Any]:
    """Those of `:predict` and of predict jobs with a `false_alarm_rate`, if the server keeps
    them."""
    query = queries.select_refused(model, proposal_id)
    return listing.page(query, RefusedImage.id, schemas.RefusedImage.of, descending=True)


@router.get(
    "/refused-images/{refused_id}/content",
    dependencies=[DownloadLimit],
    response_class=FileResponse,
    responses=CONTENT_RESPONSES,
    summary="Download a refused image",
)
def download_refused_image(
    runtime: RuntimeDep, refused: RefusedDep, if_none_match: IfNoneMatch = None
) -> Response:
    """The bytes as they were sent; range requests are supported."""
    return content_response(runtime, refused, if_none_match)


@router.get(
    "/refused-images/{refused_id}/thumbnail",
    response_class=Response,
    responses=THUMBNAIL_RESPONSES,
    summary="Download a thumbnail of a refused image",
)
async def read_refused_thumbnail(
    request: Request,
    tenant: TenantDep,
    refused: RefusedDep,
    size: ThumbnailSize = "256",
    if_none_match: IfNoneMatch = None,
) -> Response:
    """WebP, created on the first request and stored."""
    return await thumbnail_response(request, tenant, refused, size, if_none_match)


@router.delete("/refused-images/{refused_id}", status_code=204, summary="Delete a refused image")
def delete_refused_image(runtime: RuntimeDep, tenant: TenantDep, refused_id: RefusedId) -> None:
    """Takes it out of its proposal, too. Its bytes are deleted some minutes later, unless an image
    of a dataset has the same bytes."""
    with runtime.db.write() as session:
        queries.delete_refused(session, [queries.get_refused(session, tenant, refused_id).id])
