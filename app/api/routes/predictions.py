"""Labels for new images."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.access import ApiKeyAuth, GuardedRoute
from app.api.http.bodies import predict_body
from app.api.http.dependencies import IdempotencyKeyHeader
from app.api.http.errors import responses
from app.api.routes import predict_inputs as inputs
from app.api.routes.jobs import accept_job, accepted
from app.api.routes.models import Version
from app.api.routes.predict_place import reserve_capacity
from app.core.jobs.requests.predict import PredictCreate
from app.core.platform.actor import Actor
from app.core.platform.errors import ImageRejected
from app.core.runtime import Runtime
from app.core.serving import Outcome, Serving
from app.core.serving.admission import Reservation
from app.core.serving.references import References, Target

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/models",
    tags=["models"],
    responses=responses(401, 403, 404, 409, 413, 422, 429, 503),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)

Reference = Annotated[str, Path(max_length=170, description="`name` or `name@alias`.")]
_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas.Predictions, "description": "Labels, in the order of the request"},
    202: {"model": schemas.Job, "description": "For a whole dataset: a job"},
}


@dataclass(frozen=True)
class PredictContext:
    """All that an answer needs, found once a request."""

    runtime: Runtime
    serving: Serving
    references: References
    actor: Actor
    request: Request
    options: schemas.PredictOptions
    idempotency_key: str | None


def _predict_context(request: Request, idempotency_key: str | None) -> PredictContext:
    state = request.app.state
    return PredictContext(
        state.runtime,
        state.serving,
        state.references,
        request.state.actor,
        request,
        inputs.read_options(request),
        idempotency_key,
    )


@router.post(
    "/{name}:predict",
    response_model=None,
    responses=_ANSWERS,
    openapi_extra=predict_body(),
    summary="Labels for new images",
)
async def predict(
    request: Request, name: Reference, idempotency_key: IdempotencyKeyHeader = None
) -> Response:
    """Send images in a form, or JSON with the ids of images that are here already, with
    embeddings, or with a dataset's id. One image that cannot be read gets an error in its place;
    the others are answered all the same. While a model is loaded for the first time a request
    waits, or gets 503 if that takes long; when too many wait, 429."""
    return await _answer(_predict_context(request, idempotency_key), name)


@router.post(
    "/{name}/versions/{version}:predict",
    response_model=None,
    responses=_ANSWERS,
    openapi_extra=predict_body(),
    summary="Labels for new images from a given version",
)
async def predict_with_version(
    request: Request,
    name: Annotated[str, Path(max_length=100, description="The model's name.")],
    version: Version,
    idempotency_key: IdempotencyKeyHeader = None,
) -> Response:
    """As `:predict` of the model, from this version whatever the aliases say."""
    return await _answer(_predict_context(request, idempotency_key), f"{name}/versions/{version}")


async def _answer(predicting: PredictContext, reference: str) -> Response:
    with reserve_capacity(predicting.request) as place:
        target = await predicting.references.resolve(predicting.actor.tenant, reference)
        return await _predict(predicting, target, place)


async def _predict(predicting: PredictContext, target: Target, place: Reservation) -> Response:
    settings = predicting.runtime.settings
    if inputs.is_form(predicting.request):
        images = await inputs.read_form(predicting.request, place, settings.max_predict_files)
        return await _for_images(predicting, target, images)
    most_numbers = settings.max_predict_features * target.feature_dim
    body = await inputs.read_body(predicting.request, place, most_numbers)
    if body.dataset_id is not None:
        return await run_in_threadpool(_for_dataset, predicting, target, body.dataset_id)
    if body.image_ids is not None:
        images = await run_in_threadpool(
            inputs.read_stored,
            predicting.runtime,
            predicting.actor.tenant,
            body.image_ids,
            place,
            settings.max_predict_files,
        )
        return await _for_images(predicting, target, images)
    assert body.embeddings is not None
    features = await run_in_threadpool(
        inputs.to_features, body.embeddings, target.feature_dim, settings.max_predict_features
    )
    outcomes = await predicting.serving.predict(
        target.files,
        features=features,
        seconds=predicting.options.deadline_seconds,
    )
    names = [str(number) for number in range(len(features))]
    return _as_response(predicting, target, names, outcomes)


async def _for_images(
    predicting: PredictContext, target: Target, images: inputs.Images
) -> Response:
    readable = [data for data in images.contents if isinstance(data, bytes)]
    found: Sequence[Outcome] = ()
    if readable:
        found = await predicting.serving.predict(
            target.files,
            readable,
            seconds=predicting.options.deadline_seconds,
        )
    answers = iter(found)
    outcomes = [next(answers) if isinstance(d, bytes) else d for d in images.contents]
    return _as_response(predicting, target, images.names, outcomes)


def _for_dataset(predicting: PredictContext, target: Target, dataset_id: str) -> Response:
    predicting.actor.check("write")
    body = PredictCreate(
        kind="predict", dataset_id=dataset_id, model=f"{target.name}/versions/{target.version}"
    )
    job = accept_job(predicting.runtime, predicting.actor.tenant, predicting.idempotency_key, body)
    response = Response(job.model_dump_json(), 202, media_type="application/json")
    accepted(response, job)
    return response


def _as_response(
    predicting: PredictContext, target: Target, names: Sequence[str], outcomes: Sequence[Outcome]
) -> Response:
    answer = schemas.Predictions(
        model=schemas.ModelRef(name=target.name, version=target.version),
        data=[
            _prediction(name, outcome, target.labels, predicting.options)
            for name, outcome in zip(names, outcomes, strict=True)
        ],
    )
    return Response(answer.model_dump_json(), media_type="application/json")


def _prediction(
    image: str, outcome: Outcome, labels: Sequence[str], options: schemas.PredictOptions
) -> schemas.Prediction:
    if isinstance(outcome, ImageRejected):
        error = schemas.ErrorInfo(code=outcome.code, detail=outcome.detail)
        return schemas.Prediction(
            image=image, cluster_id=None, label=None, probability=None, top_k=[], error=error
        )
    likeliest = np.argsort(-outcome, kind="stable")[: options.top_k]
    ranked = [
        schemas.ClusterProbability(
            cluster_id=int(i), label=labels[i], probability=round(float(outcome[i]), 6)
        )
        for i in likeliest
    ]
    first = ranked[0]
    return schemas.Prediction(
        image=image,
        cluster_id=first.cluster_id,
        label=first.label,
        probability=first.probability,
        top_k=ranked,
        probabilities=[round(float(p), 6) for p in outcome] if options.probabilities else None,
        error=None,
    )
