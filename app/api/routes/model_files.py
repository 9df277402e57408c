"""Export and import of model versions as files."""

import hashlib
import json
import tempfile
from typing import IO, Annotated, Any

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import StreamingResponse
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import (
    ActorDep,
    IdempotencyKeyHeader,
    ResolverDep,
    RuntimeDep,
    TenantDep,
)
from app.api.http.errors import responses
from app.api.http.limits import DownloadLimit, check_quota
from app.api.http.openapi_bodies import BINARY
from app.api.routes.models import Name, Version
from app.core.access.quota import check_growth
from app.core.clusterings.names import current_clusters
from app.core.models import registry
from app.core.models.calibrations import current_calibration
from app.core.models.package.packing import PackedModel
from app.core.models.package.unpacking import Unpacked, unpack
from app.core.platform import idempotency
from app.core.platform.actor import Actor
from app.core.platform.errors import InvalidRequest
from app.core.platform.ids import new_id
from app.core.runtime import Runtime
from app.core.storage import raise_if_full
from app.core.storage.keys import model_folder

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/models",
    tags=["models"],
    responses=responses(401, 422, 503),
)
_BUFFER = 1024 * 1024
_MEDIA_TYPE = "application/zip"
_BODY = {
    "requestBody": {
        "required": True,
        "content": {_MEDIA_TYPE: {"schema": BINARY}},
    }
}


@router.get(
    "/{name}/versions/{version}/file",
    dependencies=[DownloadLimit],
    response_class=StreamingResponse,
    responses={200: {"content": {_MEDIA_TYPE: {}}}, **responses(404)},
    summary="Download a version",
)
def download_version(
    runtime: RuntimeDep, tenant: TenantDep, name: Name, version: Version
) -> StreamingResponse:
    """A zip with the manifest, which has the current names of the clusters and the current
    calibration, the weights, and the SHA-256 of each file. `model_integrity` if a file does not
    match its hash."""
    with runtime.db.read() as session:  # closed before a slow client reads
        model = registry.get_model(session, tenant, name)
        row = registry.get_version(session, model, version)
        labels = current_clusters(session, row).names
        calibration = current_calibration(session, row)
    packed = PackedModel(runtime.storage, name, row, labels, calibration)
    headers = {
        "Content-Length": str(packed.size),
        "Content-Disposition": f'attachment; filename="{packed.filename}"',
    }
    return StreamingResponse(packed.blocks(), media_type=_MEDIA_TYPE, headers=headers)


@router.post(
    ":import",
    status_code=201,
    response_model=schemas.ModelVersion,
    dependencies=[Depends(check_quota)],
    responses=responses(409, 413, 429, 507),
    openapi_extra=_BODY,
    summary="Import a version",
)
async def import_version(
    request: Request,
    response: Response,
    runtime: RuntimeDep,
    resolver: ResolverDep,
    actor: ActorDep,
    name: Annotated[
        str | None, Query(max_length=100, description="By default the name in the file.")
    ] = None,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.ModelVersion:
    """Send a file that this or another service has exported. It becomes the next version of the
    model; the same file sent again becomes another version. `model_file_invalid` if the file is
    damaged or incomplete."""
    if name is not None:
        registry.check_name(name, "name")
    with (
        idempotency.in_flight(actor.tenant, idempotency_key),
        tempfile.TemporaryFile(dir=runtime.settings.temporary_dir) as file,
    ):
        digest = await _receive(request, file)
        imported = await run_in_threadpool(
            _register, runtime, actor, idempotency_key, name, file, digest
        )
    resolver.invalidate(actor.tenant, imported.name)
    response.headers["Location"] = f"/v1/models/{imported.name}/versions/{imported.version}"
    return imported


async def _receive(request: Request, file: IO[bytes]) -> str:
    """Writes the body to the file; returns its SHA-256."""
    digest, buffer = hashlib.sha256(), bytearray()

    def flush() -> None:
        digest.update(buffer)
        try:
            file.write(buffer)
            file.flush()
        except OSError as error:
            raise_if_full(error)
            raise

    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= _BUFFER:
            await run_in_threadpool(flush)
            buffer.clear()
    await run_in_threadpool(flush)
    return digest.hexdigest()


def _register(
    runtime: Runtime,
    actor: Actor,
    key: str | None,
    name: str | None,
    file: IO[bytes],
    digest: str,
) -> schemas.ModelVersion:
    """Stores the files, then commits the version; deletes the files if that fails."""
    folder, created = model_folder(new_id("imp")), False
    request_hash = hashlib.sha256(json.dumps(["models:import", name, digest]).encode()).hexdigest()
    try:
        unpacked = unpack(file, runtime.storage, folder, runtime.settings.weights_dir)
        chosen = _choose_name(name, unpacked)

        def create(session: Session) -> dict[str, Any]:
            if actor.storage_bytes is not None:
                check_growth(session, actor.tenant, unpacked.bytes, actor.storage_bytes)
            row = registry.add_version(
                session,
                tenant=actor.tenant,
                name=chosen,
                job_id=None,
                clustering_id=None,
                folder=folder,
                manifest=unpacked.manifest,
                files=unpacked.files,
                imported_bytes=unpacked.bytes,
            )
            session.refresh(row)
            return schemas.ModelVersion.of(chosen, row).model_dump(mode="json")

        answer, created = idempotency.answer_once(
            runtime.db, actor.tenant, key, request_hash, create
        )
    finally:
        if not created:
            runtime.storage.delete_folder(folder)
    return schemas.ModelVersion.model_validate(answer)


def _choose_name(name: str | None, unpacked: Unpacked) -> str:
    chosen = name or unpacked.name
    if chosen is None:
        raise InvalidRequest.field("name", "is required: the file does not contain a name")
    return registry.check_name(chosen, "name")
