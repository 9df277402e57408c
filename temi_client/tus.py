"""Resumable uploads by tus 1.0: a file is sent in chunks and continued after interruptions."""

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
from temi_client.models.datasets import Upload, UploadLimits
from temi_client.transport import Backoff, Body, Transport

CHUNK_BYTES = 8 * 1024 * 1024
_BLOCK = 256 * 1024
_VERSION = {"Tus-Resumable": "1.0.0"}
# Retried after reading the offset: another offset, an upload that is still locked by the request
# of the broken connection, a busy service.
_RETRYABLE_STATUSES = {409, 423, 429, 503}


def read_limits(transport: Transport) -> UploadLimits:
    headers = transport.send("OPTIONS", "/v1/uploads").headers
    return UploadLimits(
        max_bytes=int(headers["Tus-Max-Size"]), extensions=headers["Tus-Extension"].split(",")
    )


def create_upload(transport: Transport, path: Path) -> Upload:
    size = path.stat().st_size
    name = b64encode(path.name.encode("utf-8", "replace")).decode()
    headers = {**_VERSION, "Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
    response = transport.send("POST", "/v1/uploads", headers=headers).headers
    return Upload(
        id=upload_id_of(response["Location"]), offset=0, length=size, expires_at=_expiry(response)
    )


def read_upload(transport: Transport, upload: str) -> Upload:
    """Returns the state of an upload, given its id or URL."""
    upload_id = upload_id_of(upload)
    response = transport.send("HEAD", _path(upload_id), headers=_VERSION).headers
    return Upload(
        id=upload_id,
        offset=int(response["Upload-Offset"]),
        length=int(response["Upload-Length"]),
        expires_at=_expiry(response),
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
    """Sends the missing bytes; raises `UploadInterrupted` if the retries are used up."""
    if path.stat().st_size != upload.length:
        raise ValueError(
            f"upload {upload.id} expects {upload.length} bytes, but {path} has "
            f"{path.stat().st_size}: resume it with the same file"
        )
    backoff = Backoff(transport.retries)
    while upload.offset < upload.length:
        try:
            offset = _send_chunk(transport, path, upload, chunk_bytes, progress)
            backoff.reset()
        except (ServiceUnreachable, ApiError) as error:
            if not _is_retryable(error):
                raise
            offset = _recover(transport, upload, backoff, error)
        upload = upload.model_copy(update={"offset": offset})
    return upload


def upload_id_of(upload: str) -> str:
    """Returns the last segment of a URL. The key never goes to the host of that URL."""
    return urlsplit(upload).path.rstrip("/").rsplit("/", 1)[-1]


def _recover(
    transport: Transport, upload: Upload, backoff: Backoff, error: ServiceUnreachable | ApiError
) -> int:
    """Returns the offset of the upload after a chunk failed."""
    if isinstance(error, ApiError) and error.code == "upload_offset":
        # An earlier chunk arrived although its response was lost: not a failure.
        arrived = read_upload(transport, upload.id).offset
        if arrived != upload.offset:
            return arrived
    while True:
        try:
            backoff.wait_or_raise(error)
            arrived = read_upload(transport, upload.id).offset
        except (ServiceUnreachable, ApiError) as again:
            if again is error:
                raise UploadInterrupted(transport.base_url, str(error), upload.id) from error
            if not _is_retryable(again):
                raise
            error = again
            continue
        if arrived > upload.offset:
            backoff.reset()
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
    # Not retried as it is: a part of it may have arrived.
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
                    raise ValueError(f"{path} was truncated during the upload")
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


def _is_retryable(error: ServiceUnreachable | ApiError) -> bool:
    return isinstance(error, ServiceUnreachable) or error.status in _RETRYABLE_STATUSES


def _expiry(headers: Mapping[str, str]) -> datetime | None:
    try:
        return parsedate_to_datetime(headers["Upload-Expires"])
    except (KeyError, ValueError):
        return None
