"""The model registry, and labels for new images."""

from functools import partial
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.concurrency import run_in_threadpool
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.deps import ListingDep, RuntimeDep, SessionDep, TenantDep
from app.api.errors import responses
from app.api.multipart import read_files
from app.core import registry
from app.core.errors import ImageRejected, InvalidRequest
from app.core.predictor import ModelFiles, Outcome, Predictor
from app.core.tables import Model, ModelVersion

router = APIRouter(prefix="/v1/models", tags=["models"], responses=responses(401, 422, 503))

Name = Annotated[str, Path(max_length=100, description="The model's name.")]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]
TopK = Annotated[int, Query(ge=1, le=100, description="Likeliest clusters to list.")]
WithAll = Annotated[bool, Query(description="List the probability of every cluster, too.")]
_IMAGES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["files"],
                    "properties": {
                        "files": {
                            "type": "array",
                            "items": {"type": "string", "format": "binary"},
                        }
                    },
                }
            }
        },
    }
}


def load_model(session: SessionDep, tenant: TenantDep, name: Name) -> Model:
    return registry.get_model(session, tenant, name)


ModelDep = Annotated[Model, Depends(load_model)]


def _show(session: Session, model: Model) -> schemas.Model:
    return schemas.Model(
        name=model.name,
        latest_version=model.latest_version,
        aliases=registry.aliases(session, model),
        created_at=schemas.to_time(model.created_at),
    )


@router.get("", response_model=schemas.Page[schemas.Model], summary="List models by name")
def list_models(listing: ListingDep, session: SessionDep, tenant: TenantDep) -> dict[str, Any]:
    query = select(Model).where(Model.tenant == tenant)
    return listing.page(query, Model.name, lambda model: _show(session, model))


@router.get("/{name}", responses=responses(404), summary="Look at a model and its aliases")
def read_model(session: SessionDep, model: ModelDep) -> schemas.Model:
    return _show(session, model)


@router.get(
    "/{name}/versions",
    response_model=schemas.Page[schemas.ModelVersion],
    responses=responses(404, 422),
    summary="List a model's versions, newest first",
)
def list_versions(listing: ListingDep, model: ModelDep) -> dict[str, Any]:
    query = select(ModelVersion).where(ModelVersion.model_id == model.id)
    show = partial(schemas.ModelVersion.of, model.name)
    return listing.page(query, ModelVersion.version, show, descending=True)


@router.get(
    "/{name}/versions/{version}",
    responses=responses(404),
    summary="Look at a version and its manifest",
)
def read_version(session: SessionDep, model: ModelDep, version: Version) -> schemas.ModelVersion:
    return schemas.ModelVersion.of(model.name, registry.get_version(session, model, version))


@router.put(
    "/{name}/aliases/{alias}",
    responses=responses(404, 422),
    summary="Point an alias at a version",
)
def put_alias(
    runtime: RuntimeDep,
    tenant: TenantDep,
    name: Name,
    alias: Annotated[str, Path(max_length=64)],
    body: schemas.AliasUpdate,
) -> schemas.Model:
    """Clients that ask for `name@alias` get the new version from the next request on."""
    with runtime.db.write() as session:
        model = registry.get_model(session, tenant, name)
        registry.set_alias(session, model, alias, body.version)
        return _show(session, model)


@router.delete(
    "/{name}/aliases/{alias}",
    status_code=204,
    responses=responses(404),
    summary="Remove an alias",
)
def delete_alias(
    runtime: RuntimeDep, tenant: TenantDep, name: Name, alias: Annotated[str, Path(max_length=64)]
) -> None:
    with runtime.db.write() as session:
        registry.remove_alias(session, registry.get_model(session, tenant, name), alias)


_PREDICT_ERRORS = responses(404, 413, 422, 429, 503)


@router.post(
    "/{name}:predict",
    responses=_PREDICT_ERRORS,
    openapi_extra=_IMAGES,
    summary="Labels for new images",
)
async def predict(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    name: Annotated[str, Path(max_length=170, description="`name` or `name@alias`.")],
    top_k: TopK = 3,
    probabilities: WithAll = False,
) -> schemas.Predictions:
    """Send images in a form. One that cannot be read gets an error in its place; the others are
    answered all the same. The first request after a start takes some seconds longer: the model
    is loaded then."""
    images = await _read_images(request)

    def answer() -> schemas.Predictions:
        with runtime.db.read() as session:
            model, version = registry.resolve(session, tenant, name)
        return _answer(request, model, version, images, top_k, probabilities)

    return await run_in_threadpool(answer)


@router.post(
    "/{name}/versions/{version}:predict",
    responses=_PREDICT_ERRORS,
    openapi_extra=_IMAGES,
    summary="Labels for new images from a given version",
)
async def predict_with_version(
    request: Request,
    session: SessionDep,
    model: ModelDep,
    version: Version,
    top_k: TopK = 3,
    probabilities: WithAll = False,
) -> schemas.Predictions:
    row = await run_in_threadpool(registry.get_version, session, model, version)
    images = await _read_images(request)
    return await run_in_threadpool(_answer, request, model, row, images, top_k, probabilities)


async def _read_images(request: Request) -> list[tuple[str, bytes]]:
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise InvalidRequest.field("files", "send images as multipart/form-data")
    limit = request.app.state.runtime.settings.max_predict_files
    return [
        (part.filename, part.file.read()) async for part in read_files(request, max_files=limit)
    ]


def _answer(
    request: Request,
    model: Model,
    version: ModelVersion,
    images: list[tuple[str, bytes]],
    top_k: int,
    with_all: bool,
) -> schemas.Predictions:
    predictor: Predictor = request.app.state.predictor
    files = ModelFiles.of(version.folder, version.files, version.manifest)
    outcomes = predictor.predict(files, [data for _, data in images])
    labels = [cluster["label"] for cluster in version.manifest["clusters"]]
    return schemas.Predictions(
        model=schemas.ModelRef(name=model.name, version=version.version),
        data=[
            _prediction(image, outcome, labels, top_k, with_all)
            for (image, _), outcome in zip(images, outcomes, strict=True)
        ],
    )


def _prediction(
    image: str, outcome: Outcome, labels: list[str], top_k: int, with_all: bool
) -> schemas.Prediction:
    if isinstance(outcome, ImageRejected):
        error = schemas.ErrorInfo(code=outcome.code, detail=outcome.detail)
        return schemas.Prediction(
            image=image, cluster_id=None, label=None, probability=None, top_k=[], error=error
        )
    likeliest = np.argsort(-outcome, kind="stable")[:top_k]
    ranked = [
        schemas.ClusterProbability(
            cluster_id=int(i), label=labels[i], probability=round(float(outcome[i]), 6)
        )
        for i in likeliest
    ]
    return schemas.Prediction(
        image=image,
        **ranked[0].model_dump(),
        top_k=ranked,
        probabilities=[round(float(p), 6) for p in outcome] if with_all else None,
        error=None,
    )
