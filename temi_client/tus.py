"""Resumable uploads by tus 1.0: a file in pieces, taken up again where the connection broke."""

from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from temi_client.downloads import Progress
from temi_client.errors import ApiError, ServiceUnreachable, UploadInterrupted
from temi_client.models import Upload
from temi_client.transport import Body, Patience, Transport

CHUNK_BYTES = 8 * 1024 * 1024
_BLOCK = 256 * 1024
_VERSION = {"Tus-Resumable": "1.0.0"}
# Worth another try after a look at what has arrived: an offset that differs, an upload that the
# broken connection's request still holds, a service that is busy.
_PASSING = {409, 423, 429, 503}


def create_upload(transport: Transport, path: Path) -> Upload:
    size = path.stat().st_size
    name = b64encode(path.name.encode("utf-8", "replace")).decode()
    headers = {**_VERSION, "Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
    response = transport.send("POST", "/v1/uploads", headers=headers)
    return Upload(id=upload_id_of(response.headers["Location"]), offset=0, length=size)


def read_upload(transport: Transport, upload: str) -> Upload:
    """How much of an upload has arrived; by its address or id."""
    upload_id = upload_id_of(upload)
    headers = transport.send("HEAD", _path(upload_id), headers=_VERSION).headers
    return Upload(
        id=upload_id, offset=int(headers["Upload-Offset"]), length=int(headers["Upload-Length"])
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
            if isinstance(error, ApiError) and error.status not in _PASSING:
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
    try:
        patience.wait_or_raise(error)
        arrived = read_upload(transport, upload.id).offset
    except ServiceUnreachable as last:
        raise UploadInterrupted(last.base_url, last.reason, upload.id) from last
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
