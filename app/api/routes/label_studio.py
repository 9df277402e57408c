"""A model as a machine learning backend of Label Studio, which asks it for pre-annotations.

Label Studio adds `/health`, `/setup` and `/predict` to the URL of the backend.
"""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.dependencies import ResolverDep, TenantDep
from app.api.http.errors import responses
from app.api.http.openapi_bodies import body_ref
from app.api.http.validation import check_json_values, parse_json
from app.api.inference import (
    OTHER_JSON_VALUES,
    PredictContext,
    PredictInputs,
    check_count,
    open_context,
)
from app.core.serving.label_studio import (
    LabelingConfig,
    model_version,
    parse_config,
    references_of,
    to_predictions,
)
from app.core.serving.task_images import TaskImages

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/label-studio/{model}",
    tags=["label studio"],
    responses=responses(401, 403, 404, 422, 429, 503),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)
ModelName = Annotated[str, Path(max_length=170, description="`name` or `name@alias`.")]
_BODY = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": body_ref(schemas.LabelStudioTasks)}},
    }
}
_VALUES_PER_TASK = 1_000  # a task may hold other data, and annotations


@router.get("/health", summary="Check a model for Label Studio")
async def check_label_studio(
    resolver: ResolverDep, tenant: TenantDep, model: ModelName
) -> schemas.LabelStudioHealth:
    """404 if there is no such model."""
    version = model_version(await resolver.resolve(tenant, model))
    return schemas.LabelStudioHealth(status="UP", model_class="TEMI", model_version=version)


@router.post("/setup", summary="Connect a project of Label Studio")
async def set_up_label_studio(
    body: schemas.LabelStudioSetup, resolver: ResolverDep, tenant: TenantDep, model: ModelName
) -> schemas.LabelStudioVersion:
    """Checks the labeling configuration; nothing is stored."""
    found = await resolver.resolve(tenant, model)
    await run_in_threadpool(parse_config, body.label_config)
    return schemas.LabelStudioVersion(model_version=model_version(found))


@router.post(
    "/predict",
    response_model=None,
    responses={200: {"model": schemas.LabelStudioPredictions, "description": "Predictions"}},
    openapi_extra=_BODY,
    summary="Predict the choices of tasks of Label Studio",
)
async def predict_label_studio(request: Request, model: ModelName) -> Response:
    """The images of the tasks are public URLs (if the settings allow URL sources), data URIs, or
    links to images of this service. A task without a prediction has an `error` that says why."""
    async with open_context(request, model) as context:
        body = await _read(context)
        config = await run_in_threadpool(parse_config, body.label_config)
        return await _predict(context, config, body)


async def _read(context: PredictContext) -> schemas.LabelStudioTasks:
    body, limit = await context.read_body(), context.runtime.settings.max_predict_files
    check_json_values(body, limit * _VALUES_PER_TASK + OTHER_JSON_VALUES, "tasks")
    found = await run_in_threadpool(parse_json, schemas.LabelStudioTasks, body)
    check_count("tasks", len(found.tasks), limit)
    return found


async def _predict(
    context: PredictContext, config: LabelingConfig, body: schemas.LabelStudioTasks
) -> Response:
    runtime = context.runtime
    images = TaskImages(runtime.settings, runtime.db, runtime.storage, context.actor.tenant)
    references = references_of(config, [task.data for task in body.tasks])
    read = await run_in_threadpool(images.read, references, context.reservation)
    outcomes = await context.predict(PredictInputs(images=read), None)
    answer = schemas.LabelStudioPredictions(
        model_version=model_version(context.model),
        results=[
            schemas.LabelStudioPrediction.model_validate(prediction)
            for prediction in to_predictions(config, context.model, outcomes)
        ],
    )
    return Response(answer.model_dump_json(), media_type="application/json")
