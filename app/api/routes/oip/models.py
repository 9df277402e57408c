"""Metadata and readiness of models, by the Open Inference Protocol."""

import asyncio
import time
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.dependencies import ResolverDep, ServingDep, SessionDep, TenantDep
from app.api.http.errors import InferenceProblem, responses
from app.core.clusterings.names import current_clusters
from app.core.models.queries import version_numbers
from app.core.models.versions import resolve
from app.core.platform.errors import ModelLoading
from app.core.serving.client import Serving
from app.core.serving.resolver import ResolvedModel

ModelName = Annotated[str, Path(max_length=170, description="`name` or `name@alias`.")]
# A text, as in the protocol: a version that is not a number is not found.
VersionName = Annotated[str, Path(max_length=20, description="A version's number.")]


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """A route's OpenAPI responses: problems with the `error` field of the protocol."""
    return responses(400, 401, 403, 404, 429, 503, *statuses, "default", model=InferenceProblem)


def version_reference(model: str, version: str) -> str:
    return f"{model}/versions/{version}"


router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v2/models",
    tags=["inference protocol"],
    responses=error_responses(),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)
_WAIT_SECONDS = 0.5  # for a model that is loading: probes do not wait long
_POLL_SECONDS = 0.02


@router.get("/{model}", summary="Read the metadata of a model")
def read_model_metadata(
    session: SessionDep, tenant: TenantDep, model: ModelName
) -> schemas.ModelMetadata:
    """The tensors that `infer` takes and returns, and the labels of the clusters."""
    return _metadata(session, tenant, model)


@router.get("/{model}/versions/{version}", summary="Read the metadata of a version")
def read_version_metadata(
    session: SessionDep, tenant: TenantDep, model: ModelName, version: VersionName
) -> schemas.ModelMetadata:
    """As for the model."""
    return _metadata(session, tenant, version_reference(model, version))


@router.get("/{model}/ready", summary="Check readiness of a model")
async def check_model_ready(
    serving: ServingDep, resolver: ResolverDep, tenant: TenantDep, model: ModelName
) -> schemas.ModelReady:
    """Starts to load the model if it is not loaded. 503 while it loads, or if it cannot be loaded;
    `error` says why."""
    return await _ready(serving, await resolver.resolve(tenant, model))


@router.get("/{model}/versions/{version}/ready", summary="Check readiness of a version")
async def check_version_ready(
    serving: ServingDep,
    resolver: ResolverDep,
    tenant: TenantDep,
    model: ModelName,
    version: VersionName,
) -> schemas.ModelReady:
    """As for the model."""
    return await _ready(serving, await resolver.resolve(tenant, version_reference(model, version)))


def _metadata(session: Session, tenant: str, reference: str) -> schemas.ModelMetadata:
    model, version = resolve(session, tenant, reference)
    dim = version.manifest["feature_dim"]
    labels = current_clusters(session, version).names
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
            schemas.TensorMetadata(name="raw_probability", datatype="FP32", shape=[-1]),
            schemas.TensorMetadata(name="novelty", datatype="FP32", shape=[-1]),
        ],
        parameters=schemas.ModelParameters(
            version=str(version.version),
            backbone=version.manifest["backbone"],
            feature_dim=dim,
            n_clusters=len(labels),
            labels=labels,
        ),
    )


async def _ready(serving: Serving, model: ResolvedModel) -> schemas.ModelReady:
    """Polls the shared future: to await it with a timeout would cancel it for other requests."""
    loading = serving.load(model.files)
    until = time.monotonic() + _WAIT_SECONDS
    while not loading.done():
        if time.monotonic() > until:
            raise ModelLoading(f"{model.name} {model.version} is loading; try again.")
        await asyncio.sleep(_POLL_SECONDS)
    loading.result()  # raises the reason if it failed
    return schemas.ModelReady(name=model.name, ready=True)
