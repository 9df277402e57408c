"""Receives the body of an ingest request with bounded memory."""

import hashlib
import io
import json
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO, Any

from fastapi import Request
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool

from app.api import schemas
from app.api.http.body_limits import media_type_of
from app.api.http.multipart import FilePart, read_files
from app.api.http.validation import check_json_values, parse_json
from app.core.datasets.archives import HEAD_BYTES, is_archive_head
from app.core.platform.errors import ArchiveInvalid, BodyTooLarge, InvalidRequest
from app.core.platform.ids import new_id
from app.core.platform.settings import MiB
from app.core.runtime import Runtime

_BUFFER = 1024 * 1024
_MAX_JSON = 32 * MiB  # a long list of URLs
_OTHER_VALUES = 10_000  # that a body may have beside its URLs
_MANIFESTS = {
    "text/csv": "csv",
    "application/x-ndjson": "jsonl",
    "application/ndjson": "jsonl",
    "application/jsonl": "jsonl",
}


@dataclass(frozen=True)
class Received:
    """A received body. If it is not used, the file under `key` has to be deleted."""

    source: dict[str, Any]
    digest: str  # of the body
    key: str | None = None
    request: schemas.ImagesCreate | None = None  # if the body is JSON


async def receive(
    request: Request, runtime: Runtime, schema: type[schemas.ImagesCreate]
) -> Received:
    """Takes an archive, a form of images, a manifest, or JSON with the source of the images."""
    media_type = media_type_of(request)
    if media_type == "application/json":
        text = await _read_json(request, runtime.settings.max_urls)
        return await run_in_threadpool(_from_json, runtime, text, schema)
    key = f"uploads/{new_id('up')}"
    async with contextmanager_in_threadpool(runtime.storage.writing(key)) as file:
        if media_type == "multipart/form-data":
            await _write_form(request, file, runtime.settings.max_parts)
        else:
            await _write_raw(request, file)
        size, digest = await run_in_threadpool(_measure, file)
        if size == 0:
            raise ArchiveInvalid("The body is empty; send an archive, a form, a manifest or JSON.")
    if format_ := _MANIFESTS.get(media_type):
        return Received({"type": "manifest", "key": key, "format": format_}, digest, key)
    return Received({"type": "archive", "key": key}, digest, key)


def _from_json(runtime: Runtime, text: bytes, schema: type[schemas.ImagesCreate]) -> Received:
    body = parse_json(schema, text)
    source = body.source
    digest = hashlib.sha256(source.model_dump_json().encode()).hexdigest()
    if not isinstance(source, schemas.UrlsSource):
        return Received(source.model_dump(), digest, None, body)
    key = f"uploads/{new_id('up')}"  # too long for the job's own row
    with runtime.storage.writing(key) as file:
        for url in source.urls:
            file.write(json.dumps({"url": url}).encode() + b"\n")
    return Received({"type": "urls", "key": key, "format": "jsonl"}, digest, key, body)


async def _read_json(request: Request, max_urls: int) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_JSON:
            raise BodyTooLarge(f"The JSON body has more than {_MAX_JSON:,} bytes.")
    check_json_values(body, max_urls + _OTHER_VALUES, "source.urls")
    return bytes(body)


async def _write_raw(request: Request, file: IO[bytes]) -> None:
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= _BUFFER:
            await run_in_threadpool(file.write, bytes(buffer))
            buffer.clear()
    await run_in_threadpool(file.write, bytes(buffer))


async def _write_form(request: Request, file: IO[bytes], max_files: int) -> None:
    """Writes a single archive as it is, and images as the members of a new tar file."""
    has_archive, packing = False, None
    async for part in read_files(request, request.stream(), max_files=max_files):
        if has_archive:
            raise InvalidRequest.field("files", "an archive must be the only file of its form")
        if packing is None and _is_archive(part):
            has_archive = True
            await run_in_threadpool(shutil.copyfileobj, part.file, file, _BUFFER)
            continue
        packing = packing or tarfile.TarFile(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)
        await run_in_threadpool(_pack, packing, part)
    if packing is not None:
        await run_in_threadpool(packing.close)


def _is_archive(part: FilePart) -> bool:
    head = part.file.read(HEAD_BYTES)
    part.file.seek(0)
    return is_archive_head(head)


def _pack(archive: tarfile.TarFile, part: FilePart) -> None:
    info = tarfile.TarInfo(_safe_name(part.filename))
    info.size = part.file.seek(0, io.SEEK_END)
    part.file.seek(0)
    archive.addfile(info, part.file)
    archive.members = []  # type: ignore[attr-defined] # tarfile would keep them all in memory


def _measure(file: IO[bytes]) -> tuple[int, str]:
    size = file.tell()
    file.seek(0)
    return size, hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _safe_name(name: str) -> str:
    """Removes every part of a file name that could leave the folder."""
    parts = [
        part
        for part in PurePosixPath(name.replace("\\", "/")).parts
        if part not in ("/", "//", "..", ".") and not part.endswith(":")
    ]
    return "/".join(parts) or "image"
