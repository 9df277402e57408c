"""Labels for new images."""

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.deps import RuntimeDep, SessionDep, TenantDep
from app.api.errors import responses
from app.api.guard import require
from app.api.models import ModelDep, Version
from app.api.multipart import read_files
from app.core import registry
from app.core.errors import ImageRejected, InvalidRequest
from app.core.serving import ModelFiles, Outcome, Serving
from app.core.tables import Model, ModelVersion

router = APIRouter(
    prefix="/v1/models",
    tags=["models"],
    dependencies=[require("predict")],
    responses=responses(401, 422, 503),
)

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
    serving: Serving = request.app.state.serving
    files = ModelFiles.of(version.folder, version.files, version.manifest)
    outcomes = serving.predict(files, [data for _, data in images])
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
