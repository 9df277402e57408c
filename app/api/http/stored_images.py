"""Responses with the bytes or the thumbnail of a stored image."""

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Annotated, Any, Literal, Protocol

from anyio import to_thread
from fastapi import Header, Query, Request, Response
from fastapi.responses import FileResponse

from app.api.http.negotiation import matches_etag
from app.core.datasets.images import MEDIA_TYPES
from app.core.datasets.thumbnails import get_thumbnail
from app.core.platform.errors import NotFound
from app.core.platform.ids import created_at_of
from app.core.runtime import Runtime
from app.core.storage.keys import blob_key

IfNoneMatch = Annotated[str | None, Header()]
ThumbnailSize = Annotated[
    Literal["64", "128", "256", "512"], Query(description="Longer side in pixels.")
]
CONTENT_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {kind: {} for kind in MEDIA_TYPES.values()}},
    206: {"description": "The requested range"},
    304: {"description": "Not modified"},
}
THUMBNAIL_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/webp": {}}},
    304: {"description": "Not modified"},
}
_CROSS_ORIGIN = {"Cross-Origin-Resource-Policy": "cross-origin"}  # for labeling tools
# The bytes of an image id never change.
_CACHED_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}


class StoredImage(Protocol):
    """An image of a dataset, or a refused one."""

    @property
    def id(self) -> Any: ...
    @property
    def sha256(self) -> Any: ...
    @property
    def format(self) -> Any: ...


def content_response(runtime: Runtime, image: StoredImage, if_none_match: str | None) -> Response:
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


async def thumbnail_response(
    request: Request, tenant: str, image: StoredImage, size: str, if_none_match: str | None
) -> Response:
    runtime: Runtime = request.app.state.runtime
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


@contextmanager
def _not_found_if_missing(image: StoredImage) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise NotFound(f"The bytes of image {image.id} are missing from the storage.") from error
