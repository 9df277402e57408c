"""Resumable uploads by the tus protocol, version 1.0: https://tus.io/protocols/resumable-upload."""

import asyncio
import base64
import binascii
import hashlib
import tempfile
from collections.abc import AsyncIterator
from email.utils import formatdate
from typing import IO, Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.http.auth import AuthenticatedRoute
from app.api.http.body_limits import media_type_of
from app.api.http.dependencies import ActorDep, RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.openapi_bodies import BINARY
from app.core.access.quota import check_upload_quota
from app.core.datasets import uploads
from app.core.datasets.uploads import Appender
from app.core.platform.actor import Actor
from app.core.platform.errors import (
    BodyTimeout,
    BodyTooLarge,
    ChecksumMismatch,
    InvalidRequest,
    TusVersion,
    UnsupportedMediaType,
)
from app.core.platform.tables import Upload
from app.core.runtime import Runtime
from app.core.storage import raise_if_full

_VERSION = "1.0.0"
_EXTENSIONS = "creation,creation-with-upload,expiration,termination,checksum"
_ALGORITHMS = ("sha1", "sha256")
_CHUNK_TYPE = "application/offset+octet-stream"
_BUFFER = 1024 * 1024
_IDLE_SECONDS = 30.0  # a client that has disappeared must not keep the upload locked
_MAX_METADATA = 4_000
_PATH = "/v1/uploads"


def check_version(
    tus_resumable: Annotated[str | None, Header(description="Always `1.0.0`.")] = None,
) -> None:
    if tus_resumable != _VERSION:
        given = "missing" if tus_resumable is None else repr(tus_resumable[:50])
        raise TusVersion(f"Tus-Resumable is {given}; send `Tus-Resumable: {_VERSION}`.")


router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix=_PATH,
    tags=["uploads"],
    responses=responses(401, 422, 503),
)
_CHECK_VERSION = [Depends(check_version)]
UploadId = Annotated[str, Path(max_length=40)]
Offset = Annotated[int, Header(ge=0, lt=2**62, description="Where this chunk starts.")]
ChecksumHeader = Annotated[
    str | None,
    Header(max_length=200, description="`sha1` or `sha256`, a space, the digest in base64."),
]
_CHUNK_BODY: dict[str, Any] = {"requestBody": {"content": {_CHUNK_TYPE: {"schema": BINARY}}}}


class TusHeaders:
    """Adds the version of the protocol to every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(_PATH):
            await self._app(scope, receive, send)
            return

        async def send_with_version(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Tus-Resumable"] = headers["Tus-Version"] = _VERSION
            await send(message)

        await self._app(scope, receive, send_with_version)


@router.options("", status_code=204, summary="Read the capabilities for resumable uploads")
def read_upload_limits(runtime: RuntimeDep) -> Response:
    """The headers of the response: the largest size, extensions of tus, checksums."""
    headers = {
        "Tus-Extension": _EXTENSIONS,
        "Tus-Max-Size": str(runtime.settings.max_body_bytes),
        "Tus-Checksum-Algorithm": ",".join(_ALGORITHMS),
    }
    return Response(status_code=204, headers=headers)


@router.post(
    "",
    status_code=201,
    response_class=Response,
    dependencies=_CHECK_VERSION,
    responses=responses(409, 412, 413, 415, 423, 429, 460, 507),
    openapi_extra=_CHUNK_BODY,
    summary="Start a resumable upload",
)
async def create_upload(
    request: Request,
    runtime: RuntimeDep,
    actor: ActorDep,
    upload_length: Annotated[int, Header(ge=0, lt=2**62, description="Bytes of the whole upload.")],
    upload_metadata: Annotated[str | None, Header(max_length=_MAX_METADATA)] = None,
    upload_checksum: ChecksumHeader = None,
) -> Response:
    """Send chunks by PATCH to the URL in `Location`, then use the id as the source of a dataset.
    The body may contain the first chunk."""
    limit = runtime.settings.max_body_bytes
    if upload_length > limit:
        raise BodyTooLarge(f"The upload has {upload_length:,} bytes; the limit is {limit:,}.")
    attributes = {"metadata": _check_metadata(upload_metadata)} if upload_metadata else {}
    has_body = media_type_of(request) == _CHUNK_TYPE
    upload = await run_in_threadpool(_create, runtime, actor, upload_length, attributes)
    offset = await _receive(request, runtime, upload, 0, upload_checksum) if has_body else 0
    headers = {"Location": f"{_PATH}/{upload.id}", **_state(upload, offset)}
    return Response(status_code=201, headers=headers)


@router.head(
    "/{upload_id}",
    response_class=Response,
    dependencies=_CHECK_VERSION,
    responses=responses(404, 412, 423),
    summary="Read the offset of an upload",
)
def read_upload(runtime: RuntimeDep, tenant: TenantDep, upload_id: UploadId) -> Response:
    """The header `Upload-Offset` is where the next chunk starts."""
    upload = _load(runtime, tenant, upload_id)
    headers = _state(upload, runtime.uploads.offset(upload))
    headers |= {"Upload-Length": str(upload.length), "Cache-Control": "no-store"}
    if metadata := upload.attributes.get("metadata"):
        headers["Upload-Metadata"] = metadata
    return Response(headers=headers)


@router.patch(
    "/{upload_id}",
    status_code=204,
    response_class=Response,
    dependencies=_CHECK_VERSION,
    responses=responses(404, 409, 412, 413, 415, 423, 460, 507),
    openapi_extra=_CHUNK_BODY,
    summary="Append to an upload",
)
async def append_to_upload(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    upload_id: UploadId,
    upload_offset: Offset,
    upload_checksum: ChecksumHeader = None,
) -> Response:
    """Bytes that arrive are kept, also if the connection breaks: HEAD returns the offset to go on
    from."""
    if media_type_of(request) != _CHUNK_TYPE:  # also without a body
        given = media_type_of(request) or "missing"
        raise UnsupportedMediaType(
            f"Send the chunk as `{_CHUNK_TYPE}`; the Content-Type is {given}."
        )
    upload = await run_in_threadpool(_load, runtime, tenant, upload_id)
    offset = await _receive(request, runtime, upload, upload_offset, upload_checksum)
    return Response(status_code=204, headers=_state(upload, offset))


@router.delete(
    "/{upload_id}",
    status_code=204,
    dependencies=_CHECK_VERSION,
    responses=responses(404, 412),
    summary="Delete an upload",
)
def delete_upload(runtime: RuntimeDep, tenant: TenantDep, upload_id: UploadId) -> None:
    """Deletes the bytes that have arrived."""
    uploads.delete_upload(runtime.db, runtime.uploads, tenant, upload_id)


def _create(runtime: Runtime, actor: Actor, length: int, attributes: dict[str, str]) -> Upload:
    hours = runtime.settings.upload_hours
    uploads.delete_stale_files(runtime.settings)
    with runtime.db.write() as session:
        check_upload_quota(session, actor, length)
        return uploads.create_upload(
            session, tenant=actor.tenant, length=length, attributes=attributes, hours=hours
        )


def _load(runtime: Runtime, tenant: str, upload_id: str) -> Upload:
    with runtime.db.read() as session:
        return uploads.get_upload(session, tenant, upload_id)


async def _receive(
    request: Request, runtime: Runtime, upload: Upload, offset: int, checksum: str | None
) -> int:
    """Appends the body to the upload; returns the new offset."""
    expected = _checksum(checksum) if checksum is not None else None
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and offset + int(declared) > upload.length:
        raise BodyTooLarge(
            f"A chunk of {int(declared):,} bytes at offset {offset:,} goes beyond the end of the "
            f"upload, whose Upload-Length is {upload.length:,}."
        )
    appending = runtime.uploads.append(upload, offset)
    async with contextmanager_in_threadpool(appending) as appender:
        if expected is None:
            async for chunk in _chunks(request):
                await run_in_threadpool(appender.write, chunk)
        else:
            await _append_checked(request, appender, *expected)
    return appender.offset


async def _append_checked(
    request: Request, appender: Appender, algorithm: str, digest: bytes
) -> None:
    """Buffers the body until its checksum is verified: an upload cannot be truncated."""
    found = hashlib.new(algorithm, usedforsecurity=False)
    with tempfile.TemporaryFile() as buffer:
        async for chunk in _chunks(request):
            found.update(chunk)
            await run_in_threadpool(_write_to, buffer, chunk)
        if found.digest() != digest:
            raise ChecksumMismatch(
                "The chunk does not match its Upload-Checksum and was not stored; send it again."
            )
        buffer.seek(0)
        while chunk := await run_in_threadpool(buffer.read, _BUFFER):
            await run_in_threadpool(appender.write, chunk)


def _write_to(buffer: IO[bytes], chunk: bytes) -> None:
    try:
        buffer.write(chunk)
        buffer.flush()
    except OSError as error:
        raise_if_full(error)
        raise


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    """Yields the body in chunks of about a mebibyte; ends early if the client is gone."""
    buffer, stream = bytearray(), aiter(request.stream())
    while True:
        try:
            buffer += await asyncio.wait_for(anext(stream), _IDLE_SECONDS)
        except (StopAsyncIteration, ClientDisconnect, TimeoutError, BodyTimeout):
            break
        if len(buffer) >= _BUFFER:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _state(upload: Upload, offset: int) -> dict[str, str]:
    expires = formatdate(upload.expires_at, usegmt=True)
    return {"Upload-Offset": str(offset), "Upload-Expires": expires}


def _check_metadata(header: str) -> str:
    """Checks `name base64, name base64`; returns the header unchanged."""
    names: set[str] = set()
    for pair in header.split(","):
        name, _, value = pair.strip().partition(" ")
        if not name or name in names or not name.isascii() or not _is_base64(value):
            raise InvalidRequest.field(
                "Upload-Metadata", "must be `name base64` pairs, separated by commas"
            )
        names.add(name)
    return header


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _checksum(header: str) -> tuple[str, bytes]:
    algorithm, _, value = header.partition(" ")
    if algorithm not in _ALGORITHMS or not _is_base64(value):
        raise InvalidRequest.field(
            "Upload-Checksum", f"must be one of {', '.join(_ALGORITHMS)} and a digest in base64"
        )
    return algorithm, base64.b64decode(value)
