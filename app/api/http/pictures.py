"""Responses with a picture that the service draws, and their ETags."""

from typing import Annotated, Any, Literal

from fastapi import Query, Response

from app.api.http.negotiation import matches_etag

_MEDIA_TYPES = {"png": "image/png", "svg": "image/svg+xml"}
NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "Not modified"}}
PLOT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in _MEDIA_TYPES.values()}},
    **NOT_MODIFIED,
}
PlotFormat = Annotated[Literal["png", "svg"], Query(alias="format")]


def not_modified(tag: str, if_none_match: str | None) -> Response | None:
    """A 304 response if the client has the picture with this tag."""
    if matches_etag(if_none_match, f'"{tag}"'):
        return Response(status_code=304, headers=_headers(tag))
    return None


def image_response(data: bytes, image_format: str, tag: str) -> Response:
    return Response(data, media_type=_MEDIA_TYPES[image_format], headers=_headers(tag))


def _headers(tag: str) -> dict[str, str]:
    return {
        # weak: another version of the service may draw it slightly differently
        "ETag": f'W/"{tag}"',
        "Cache-Control": "private, no-cache",
    }
