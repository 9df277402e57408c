"""What the protocol says of a model: its tensors, and whether it answers."""

import asyncio
import time

from fastapi import APIRouter, Depends
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.access import ApiKeyAuth, GuardedRoute
from app.api.http.dependencies import ReferencesDep, ServingDep, SessionDep, TenantDep
from app.api.routes.oip.addresses import ModelName, VersionName, numbered, refusals
from app.core.clusterings.names import current_names
from app.core.models import resolve
from app.core.models.queries import version_numbers
from app.core.platform.errors import ModelLoading
from app.core.serving import Serving
from app.core.serving.references import Target

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v2/models",
    tags=["inference protocol"],
    responses=refusals(),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)
_PATIENCE_SECONDS = 0.5  # with a model that is being loaded: probes do not wait long
_LOOK_SECONDS = 0.02


@router.get("/{model}", summary="A model's tensors")
def read_tensors(session: SessionDep, tenant: TenantDep, model: ModelName) -> schemas.ModelMetadata:
    return _metadata(session, tenant, model)


@router.get("/{model}/versions/{version}", summary="A version's tensors")
def read_tensors_of_version(
    session: SessionDep, tenant: TenantDep, model: ModelName, version: VersionName
) -> schemas.ModelMetadata:
    return _metadata(session, tenant, numbered(model, version))


@router.get("/{model}/ready", summary="Whether a model answers at once")
async def model_ready(
    serving: ServingDep, references: ReferencesDep, tenant: TenantDep, model: ModelName
) -> schemas.ModelReady:
    """503 while it is being loaded, which this request starts if need be, and if it cannot be
    loaded; `error` says why."""
    return await _ready(serving, await references.resolve(tenant, model))


@router.get("/{model}/versions/{version}/ready", summary="Whether a version answers at once")
async def version_ready(
    serving: ServingDep,
    references: ReferencesDep,
    tenant: TenantDep,
    model: ModelName,
    version: VersionName,
) -> schemas.ModelReady:
    """As for the model."""
    return await _ready(serving, await references.resolve(tenant, numbered(model, version)))


def _metadata(session: Session, tenant: str, reference: str) -> schemas.ModelMetadata:
    model, version = resolve(session, tenant, reference)
    dim = version.manifest["feature_dim"]
    labels = current_names(session, version)
    return schemas.ModelMetadata(
        name=model.name,
        versions=[str(number) for number in version_numbers(session, model)],
        inputs=[
            schemas.TensorMetadata(name="images", datatype="BYTES", shape=[-1]),
            schemas.TensorMetadata(name="embeddings", datatype="FP32", shape=[-1, dim]),
        ],
        outputs=[
            schemas.TensorMetadata(name="cluster_id", datatype="INT64", shape=[-1]),
            schemas.TensorMetadata(name="label", datatype="BYTES", shape=[-1]),
            schemas.TensorMetadata(name="probability", datatype="FP32", shape=[-1]),
            schemas.TensorMetadata(name="probabilities", datatype="FP32", shape=[-1, len(labels)]),
            schemas.TensorMetadata(name="error", datatype="BYTES", shape=[-1]),
        ],
        parameters=schemas.ModelParameters(
            version=str(version.version),
            backbone=version.manifest["backbone"],
            feature_dim=dim,
            n_clusters=len(labels),
            labels=labels,
        ),
    )


async def _ready(serving: Serving, target: Target) -> schemas.ModelReady:
    """Looks at what is loaded, again and again: others wait for the same, and to wait for it in
    their way and give up would make them give up, too."""
    loading = serving.load(target.files)
    until = time.monotonic() + _PATIENCE_SECONDS
    while not loading.done():
        if time.monotonic() > until:
            raise ModelLoading(f"{target.name} {target.version} is being loaded; ask again.")
        await asyncio.sleep(_LOOK_SECONDS)
    loading.result()  # raises what is wrong with it
    return schemas.ModelReady(name=target.name, ready=True)
