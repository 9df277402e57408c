"""`:predict`: labels for images in a form, stored images, embeddings, or a whole dataset."""

from collections.abc import Sequence
from itertools import islice
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.feature_predictions import NamedInputs, needs_features, predict_with_features
from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.body_limits import media_type_of
from app.api.http.dependencies import IdempotencyKeyHeader
from app.api.http.errors import responses
from app.api.http.multipart import read_files
from app.api.http.openapi_bodies import FORM, predict_body
from app.api.http.validation import check_json_values, parse_json, parse_query
from app.api.inference import (
    OTHER_JSON_VALUES,
    PredictContext,
    PredictInputs,
    check_count,
    check_novelty,
    check_rows,
    open_context,
    to_features,
)
from app.api.routes.jobs import accept_job, accepted
from app.api.routes.models import Version
from app.core.datasets.neighbors import Neighbor
from app.core.datasets.queries import image_hashes
from app.core.jobs.requests.predict import PredictCreate
from app.core.platform.db import Database
from app.core.platform.errors import ImageRejected, InvalidRequest
from app.core.serving.abstention import NONE_OF_THESE, is_novel
from app.core.serving.admission import Reservation
from app.core.serving.messages import Outcome
from app.core.serving.resolver import ResolvedModel
from app.core.storage import Storage
from app.core.storage.keys import blob_key

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/models",
    tags=["models"],
    responses=responses(401, 403, 404, 409, 413, 422, 429, 503),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)

Reference = Annotated[str, Path(max_length=170, description="`name` or `name@alias`.")]
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas.Predictions, "description": "Predictions in the order of the request"},
    202: {"model": schemas.Job, "description": "The job, for a whole dataset"},
}


class ImageUnknown(ImageRejected):
    code = "not_found"


class ImageGone(ImageRejected):
    code = "image_missing"


@router.post(
    "/{name}:predict",
    response_model=None,
    responses=_RESPONSES,
    openapi_extra=predict_body(),
    summary="Predict clusters of images",
)
async def predict(
    request: Request, name: Reference, idempotency_key: IdempotencyKeyHeader = None
) -> Response:
    """Send images in a form, or JSON with `image_ids`, `embeddings` or a `dataset_id`. An image
    that cannot be read gets an error; the others get predictions. If the model is not loaded yet,
    the request waits for it, or gets 503 if that takes long. If too many requests wait, the
    response is 429."""
    return await _predict(request, name, idempotency_key)


@router.post(
    "/{name}/versions/{version}:predict",
    response_model=None,
    responses=_RESPONSES,
    openapi_extra=predict_body(),
    summary="Predict clusters of images with a version",
)
async def predict_with_version(
    request: Request,
    name: Annotated[str, Path(max_length=100, description="The model's name.")],
    version: Version,
    idempotency_key: IdempotencyKeyHeader = None,
) -> Response:
    """As `:predict` of the model, with this version."""
    return await _predict(request, f"{name}/versions/{version}", idempotency_key)


async def _predict(request: Request, reference: str, idempotency_key: str | None) -> Response:
    # Not declared as parameters: FastAPI takes longer to parse them than all else takes.
    options = parse_query(schemas.PredictOptions, request.query_params)
    async with open_context(request, reference) as context:
        if media_type_of(request) == FORM:
            named = await _read_form(context)
        else:
            body = await _read_json(context)
            if body.dataset_id is not None:
                return await run_in_threadpool(
                    _start_job, context, body.dataset_id, options, idempotency_key
                )
            named = await run_in_threadpool(_to_inputs, context, body)
        check_novelty(context.model, options.false_alarm_rate)
        if needs_features(context, options, named):
            found = await predict_with_features(context, options, named)
            return _to_response(context, options, named.names, found.outcomes, found.neighbors)
        outcomes = await context.predict(named.inputs, options.deadline_seconds)
        return _to_response(context, options, named.names, outcomes)


async def _read_form(context: PredictContext) -> NamedInputs:
    names: list[str] = []
    images: list[bytes] = []
    limit = context.runtime.settings.max_predict_files
    async for part in read_files(context.request, context.stream_body(), max_files=limit):
        names.append(part.filename)
        images.append(part.file.read())
    context.reservation.enqueue_body(images=len(names))
    return NamedInputs(names, PredictInputs(images=images), uploaded=True)


async def _read_json(context: PredictContext) -> schemas.PredictBody:
    body = await context.read_body()
    max_numbers = context.runtime.settings.max_predict_features * context.model.feature_dim
    check_json_values(body, max_numbers + OTHER_JSON_VALUES, "embeddings")
    return await run_in_threadpool(_parse, body)  # a million numbers take a while


def _parse(body: bytes) -> schemas.PredictBody:
    message = f"send images as {FORM}, or JSON with image_ids, dataset_id or embeddings"
    not_json = InvalidRequest.field("files", message)
    return parse_json(schemas.PredictBody, body, not_json=not_json)


def _to_inputs(context: PredictContext, body: schemas.PredictBody) -> NamedInputs:
    runtime, settings = context.runtime, context.runtime.settings
    if body.image_ids is not None:
        check_count("image_ids", len(body.image_ids), settings.max_predict_files)
        images = read_stored_images(
            runtime.db,
            runtime.storage,
            context.actor.tenant,
            body.image_ids,
            context.reservation,
        )
        return NamedInputs(body.image_ids, PredictInputs(images=images))
    assert body.embeddings is not None
    rows, dim = body.embeddings, context.model.feature_dim
    check_count("embeddings", len(rows), settings.max_predict_features)
    check_rows("embeddings", rows, dim)
    features = to_features("embeddings", rows, len(rows), dim)
    return NamedInputs([str(i) for i in range(len(rows))], PredictInputs(features=features))


def read_stored_images(
    db: Database, storage: Storage, tenant: str, ids: Sequence[str], reservation: Reservation
) -> list[bytes | ImageRejected]:
    """Bytes of images of the tenant's datasets; an error for each that is not there."""
    with db.read() as session:
        hashes = image_hashes(session, tenant, ids)
    reservation.add(images=len(ids) - 1)  # the first was reserved with the body
    images: list[bytes | ImageRejected] = []
    for image_id in ids:
        if image_id not in hashes:
            images.append(ImageUnknown(f"There is no image {image_id!r}."))
            continue
        try:
            data = storage.read(blob_key(hashes[image_id]))
        except FileNotFoundError:
            images.append(
                ImageGone(f"The bytes of image {image_id!r} are missing from the storage.")
            )
            continue
        reservation.add(bytes_=len(data))
        images.append(data)
    return images


def _start_job(
    context: PredictContext,
    dataset_id: str,
    options: schemas.PredictOptions,
    idempotency_key: str | None,
) -> Response:
    context.actor.check("write")
    model = context.model
    body = PredictCreate(
        kind="predict",
        dataset_id=dataset_id,
        model=f"{model.name}/versions/{model.version}",
        false_alarm_rate=options.false_alarm_rate,
    )
    job = accept_job(context.runtime, context.actor.tenant, idempotency_key, body)
    response = Response(job.model_dump_json(), 202, media_type="application/json")
    accepted(response, job)
    return response


def _to_response(
    context: PredictContext,
    options: schemas.PredictOptions,
    names: Sequence[str],
    outcomes: Sequence[Outcome],
    neighbors: Sequence[Sequence[Neighbor] | None] = (),
) -> Response:
    model = context.model
    data = [
        _prediction(name, outcome, model, options)
        for name, outcome in zip(names, outcomes, strict=True)
    ]
    for prediction, found in zip(data, neighbors, strict=False):
        if found is not None:
            prediction.neighbors = [schemas.Neighbor.of(one) for one in found]
    body = schemas.Predictions(
        model=schemas.ModelRef(name=model.name, version=model.version), data=data
    )
    return Response(body.model_dump_json(), media_type="application/json")


def _prediction(
    image: str, outcome: Outcome, model: ResolvedModel, options: schemas.PredictOptions
) -> schemas.Prediction:
    if isinstance(outcome, ImageRejected):
        error = schemas.ErrorInfo(code=outcome.code, detail=outcome.detail)
        return schemas.Prediction(
            image=image, cluster_id=None, label=None, probability=None, top_k=[], error=error
        )
    clusters = model.clusters
    merged = clusters.merge(outcome.probabilities)
    calibrated = model.calibration.apply_to_all(merged)
    likeliest = (i for i in np.argsort(-merged, kind="stable") if clusters.outputs[i] == i)
    ranked = [
        schemas.ClusterProbability(
            cluster_id=clusters.cluster_ids[i],
            label=clusters.names[i],
            probability=round(float(calibrated[i]), 6),
        )
        for i in islice(likeliest, options.top_k)
    ]
    first = ranked[0]
    known = not is_novel(outcome.novelty, options.false_alarm_rate)
    return schemas.Prediction(
        image=image,
        cluster_id=first.cluster_id if known else None,
        label=first.label if known else NONE_OF_THESE,
        novelty=outcome.novelty,
        probability=first.probability,
        raw_probability=round(float(merged.max()), 6),
        top_k=ranked,
        probabilities=[round(float(p), 6) for p in calibrated] if options.probabilities else None,
        error=None,
    )
