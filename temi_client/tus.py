"""Resumable uploads by tus 1.0: a file in pieces, taken up again where the connection broke."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from temi_client.downloads import Progress
from temi_client.errors import ApiError, ServiceUnreachable, UploadInterrupted
from temi_client.models import Upload, UploadLimits
from temi_client.transport import Body, Patience, Transport

CHUNK_BYTES = 8 * 1024 * 1024
_BLOCK = 256 * 1024
_VERSION = {"Tus-Resumable": "1.0.0"}
# Worth another try after a look at what has arrived: an offset that differs, an upload that the
# broken connection's request still holds, a service that is busy.
_PASSING = {409, 423, 429, 503}


def read_limits(transport: Transport) -> UploadLimits:
    answer = transport.send("OPTIONS", "/v1/uploads").headers
    return UploadLimits(
        max_bytes=int(answer["Tus-Max-Size"]), extensions=answer["Tus-Extension"].split(",")
    )


def create_upload(transport: Transport, path: Path) -> Upload:
    size = path.stat().st_size
    name = b64encode(path.name.encode("utf-8", "replace")).decode()
    headers = {**_VERSION, "Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
    answer = transport.send("POST", "/v1/uploads", headers=headers).headers
    return Upload(
        id=upload_id_of(answer["Location"]), offset=0, length=size, expires_at=_expiry(answer)
    )


def read_upload(transport: Transport, upload: str) -> Upload:
    """How much of an upload has arrived; by its address or id."""
    upload_id = upload_id_of(upload)
    answer = transport.send("HEAD", _path(upload_id), headers=_VERSION).headers
    return Upload(
        id=upload_id,
        offset=int(answer["Upload-Offset"]),
        length=int(answer["Upload-Length"]),
        expires_at=_expiry(answer),
    )


def delete_upload(transport: Transport, upload: str) -> None:
    transport.send("DELETE", _path(upload_id_of(upload)), headers=_VERSION)


def send_file(
    transport: Transport,
    path: Path,
    upload: Upload,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    progress: Progress | None = None,
) -> Upload:
    """Send what is missing of the upload; `UploadInterrupted` names it if that cannot be done."""
    if path.stat().st_size != upload.length:
        raise ValueError(f"the upload was begun with {upload.length} bytes; {path} has others")
    patience = Patience(transport.retries)
    while upload.offset < upload.length:
        try:
            offset = _send_chunk(transport, path, upload, chunk_bytes, progress)
            patience.progressed()
        except (ServiceUnreachable, ApiError) as error:
            if not _is_passing(error):
                raise
            offset = _recover(transport, upload, patience, error)
        upload = upload.model_copy(update={"offset": offset})
    return upload


def upload_id_of(upload: str) -> str:
    """The last piece of an address. Only it is used: the key goes to no other server."""
    return urlsplit(upload).path.rstrip("/").rsplit("/", 1)[-1]


def _recover(
    transport: Transport, upload: Upload, patience: Patience, error: ServiceUnreachable | ApiError
) -> int:
    """What has arrived of a piece whose sending failed."""
    if isinstance(error, ApiError) and error.code == "upload_offset":
        # An earlier piece, given up by us, has arrived after all: that is no failure.
        arrived = read_upload(transport, upload.id).offset
        if arrived != upload.offset:
            return arrived
    while True:
        try:
            patience.wait_or_raise(error)
            arrived = read_upload(transport, upload.id).offset
        except (ServiceUnreachable, ApiError) as again:
            if again is error:
                raise UploadInterrupted(transport.base_url, str(error), upload.id) from error
            if not _is_passing(again):
                raise
            error = again
            continue
        if arrived > upload.offset:
            patience.progressed()
        return arrived


def _send_chunk(
    transport: Transport, path: Path, upload: Upload, chunk_bytes: int, progress: Progress | None
) -> int:
    headers = {
        **_VERSION,
        "Upload-Offset": str(upload.offset),
        "Content-Type": "application/offset+octet-stream",
    }
    size = min(chunk_bytes, upload.length - upload.offset)
    body = _chunk_body(path, upload, size, progress)
    # Not sent again as it is: a part of it may have arrived.
    response = transport.send("PATCH", _path(upload.id), headers=headers, body=body, retry=False)
    return int(response.headers["Upload-Offset"])


def _chunk_body(path: Path, upload: Upload, size: int, progress: Progress | None) -> Body:
    def blocks() -> Iterator[bytes]:
        sent = upload.offset
        with path.open("rb") as file:
            file.seek(sent)
            while sent < upload.offset + size:
                block = file.read(min(_BLOCK, upload.offset + size - sent))
                if not block:
                    raise ValueError(f"{path} became shorter while it was sent")
                yield block
                sent += len(block)
                if progress is not None:
                    progress(sent, upload.length)

    @contextmanager
    def open_chunk() -> Iterator[dict[str, Any]]:
        yield {"content": blocks(), "headers": {"Content-Length": str(size)}}

    return open_chunk


def _path(upload_id: str) -> str:
    return f"/v1/uploads/{quote(upload_id, safe='')}"


def _is_passing(error: ServiceUnreachable | ApiError) -> bool:
    return isinstance(error, ServiceUnreachable) or error.status in _PASSING


def _expiry(headers: Mapping[str, str]) -> datetime | None:
    try:
        return parsedate_to_datetime(headers["Upload-Expires"])
    except (KeyError, ValueError):
        return None
