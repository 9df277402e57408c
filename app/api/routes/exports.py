"""Exports: files of labels."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import Message, Receive, Scope, Send

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import problem, responses
from app.api.http.limits import DownloadLimit
from app.api.http.negotiation import matches_etag
from app.api.http.pagination import ListingDep
from app.core.exports import files
from app.core.exports.formats import FORMATS
from app.core.platform.errors import NotFound
from app.core.platform.tables import Export

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/exports",
    tags=["exports"],
    responses=responses(401, 422, 503),
)
ExportId = Annotated[str, Path(max_length=40)]
# Text last: a generated client reads every file as the first type that it knows.
_MEDIA_TYPES = sorted(
    {format_.media_type for format_ in FORMATS.values()},
    key=lambda media_type: (media_type.startswith(("text/", "application/json")), media_type),
)


def load_export(session: SessionDep, tenant: TenantDep, export_id: ExportId) -> Export:
    return files.get_export(session, tenant, export_id)


ExportDep = Annotated[Export, Depends(load_export)]


@router.get("", response_model=schemas.Page[schemas.Export], summary="List exports, newest first")
def list_exports(
    listing: ListingDep,
    tenant: TenantDep,
    clustering_id: Annotated[str | None, Query(max_length=40)] = None,
) -> dict[str, Any]:
    """Jobs of kind `export` create them."""
    query = files.select_exports(tenant, clustering_id)
    return listing.page(query, Export.id, schemas.Export.of, descending=True)


@router.get("/{export_id}", responses=responses(404), summary="Read an export")
def read_export(export: ExportDep) -> schemas.Export:
    """Format, revision, size and SHA-256 of its file."""
    return schemas.Export.of(export)


@router.get(
    "/{export_id}/content",
    dependencies=[DownloadLimit],
    response_class=FileResponse,
    responses={
        200: {"content": {media_type: {} for media_type in _MEDIA_TYPES}},
        206: {"description": "The requested range"},
        304: {"description": "Not modified"},
        **responses(404, 416),
    },
    summary="Download an export",
)
def download_export(
    runtime: RuntimeDep,
    tenant: TenantDep,
    export_id: ExportId,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    """Range requests resume an interrupted download. The `ETag`, for `If-Range`, is the SHA-256 of
    the file."""
    with runtime.db.read() as session:  # closed before a slow client reads
        export = files.get_export(session, tenant, export_id)
    headers = {"ETag": f'"{export.sha256}"', "Cache-Control": "private, no-cache"}
    if matches_etag(if_none_match, headers["ETag"]):
        return Response(status_code=304, headers=headers)
    try:
        path = runtime.storage.path(export.storage_key)
    except FileNotFoundError as error:
        detail = f"The file of export {export_id} is missing; start the export again."
        raise NotFound(detail) from error
    return _Download(path, media_type=export.media_type, filename=export.filename, headers=headers)


@router.delete(
    "/{export_id}", status_code=204, responses=responses(404), summary="Delete an export"
)
def delete_export(runtime: RuntimeDep, tenant: TenantDep, export_id: ExportId) -> None:
    """Deletes its file, too."""
    files.delete_export(runtime.db, runtime.storage, tenant, export_id)


class _Download(FileResponse):
    """A file response whose range errors are problems like all other errors."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        rejected = False

        async def send_or_reject(message: Message) -> None:
            nonlocal rejected
            if message["type"] == "http.response.start" and message["status"] in (400, 416):
                rejected = True
                await _send_range_problem(message, scope, receive, send)
            elif not rejected:
                await send(message)

        await super().__call__(_without_unknown_range(scope), receive, send_or_reject)


async def _send_range_problem(message: Message, scope: Scope, receive: Receive, send: Send) -> None:
    given = Headers(raw=message["headers"]).get("content-range")
    headers = {"Content-Range": given} if given else {}
    detail = "The file does not have this range of bytes."
    answer = problem(Request(scope), 416, "range_not_satisfiable", detail, headers=headers)
    await answer(scope, receive, send)


def _without_unknown_range(scope: Scope) -> Scope:
    """A unit other than bytes must be ignored (RFC 9110)."""
    given = Headers(scope=scope).get("range")
    if given is None or given.partition("=")[0].strip().lower() == "bytes":
        return scope
    headers = MutableHeaders(raw=list(scope["headers"]))
    del headers["range"]
    return {**scope, "headers": headers.raw}
