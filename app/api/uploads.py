"""A request's body to one archive in the storage, with bounded memory."""

import hashlib
import io
import shutil
import tarfile
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import IO

from fastapi import Request
from fastapi.concurrency import contextmanager_in_threadpool, run_in_threadpool

from app.api.multipart import FilePart, read_files
from app.core.archives import HEAD_BYTES, is_archive_head
from app.core.errors import ArchiveInvalid, InvalidRequest
from app.core.ids import new_id
from app.core.runtime import Runtime

_BUFFER = 1024 * 1024


@dataclass(frozen=True)
class Upload:
    key: str
    size: int
    sha256: str


async def receive_upload(request: Request, runtime: Runtime) -> Upload:
    key = f"uploads/{new_id('up')}"
    is_form = request.headers.get("content-type", "").startswith("multipart/form-data")
    async with contextmanager_in_threadpool(runtime.storage.writing(key)) as file:
        if is_form:
            await _write_form(request, file, runtime.settings.max_parts)
        else:
            await _write_raw(request, file)
        size, digest = await run_in_threadpool(_measure, file)
        if size == 0:
            raise ArchiveInvalid("The body is empty; send a zip or tar archive, or a form.")
    return Upload(key, size, digest)


async def _write_raw(request: Request, file: IO[bytes]) -> None:
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= _BUFFER:
            await run_in_threadpool(file.write, bytes(buffer))
            buffer.clear()
    await run_in_threadpool(file.write, bytes(buffer))


async def _write_form(request: Request, file: IO[bytes], max_files: int) -> None:
    """One archive as it is; images as the members of a tar that we write."""
    has_archive, packing = False, None
    async for part in read_files(request, max_files=max_files):
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
    info = tarfile.TarInfo(_harmless(part.filename))
    info.size = part.file.seek(0, io.SEEK_END)
    part.file.seek(0)
    archive.addfile(info, part.file)
    archive.members = []  # type: ignore[attr-defined] # tarfile would remember them all


def _measure(file: IO[bytes]) -> tuple[int, str]:
    size = file.tell()
    file.seek(0)
    return size, hashlib.file_digest(file, "sha256").hexdigest()  # type: ignore[arg-type]


def _harmless(name: str) -> str:
    """A form's file names are only names: whatever would point somewhere is cut off."""
    parts = [
        part
        for part in PurePosixPath(name.replace("\\", "/")).parts
        if part not in ("/", "//", "..", ".") and not part.endswith(":")
    ]
    return "/".join(parts) or "image"
