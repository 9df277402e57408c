"""Labels for new images, asked for in tensors."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.access import ApiKeyAuth, GuardedRoute
from app.api.http.bodies import inlined
from app.api.inference import open_context
from app.api.routes.oip import binary
from app.api.routes.oip.addresses import ModelName, VersionName, numbered, refusals
from app.api.routes.oip.answers import to_response
from app.api.routes.oip.requests import read_request
from app.core.platform.errors import UnsupportedMediaType

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v2/models",
    tags=["inference protocol"],
    responses=refusals(413, 415),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)
_BINARY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_EXAMPLE = {
    "id": "42",
    "inputs": [{"name": "images", "datatype": "BYTES", "shape": [1], "data": ["/9j/4AAQSkZJ..."]}],
    "outputs": [{"name": "label"}, {"name": "probability"}],
}
_REQUEST_BODY: dict[str, Any] = {
    "parameters": [
        {
            "name": binary.HEADER,
            "in": "header",
            "required": False,
            "schema": {"type": "integer", "minimum": 0},
            "description": "If tensors follow the JSON as bytes: the length of the JSON.",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": inlined(schemas.InferRequest.model_json_schema()),
                "example": _EXAMPLE,
            },
            **_BINARY,
        },
    },
}
_ANSWER: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas.InferAnswer, "description": "Tensors", "content": _BINARY},
}


@router.post(
    "/{model}/infer",
    response_model=None,
    responses=_ANSWER,
    openapi_extra=_REQUEST_BODY,
    summary="Tensors of labels for new images",
)
async def infer(request: Request, model: ModelName) -> Response:
    """As `/v1/models/{name}:predict`, in the words of the Open Inference Protocol: `images` or
    `embeddings` in; cluster, label and probabilities out. An image that cannot be read gets cluster
    -1 and a text in `error`; the request fails only if none can be read."""
    return await _infer(request, model)


@router.post(
    "/{model}/versions/{version}/infer",
    response_model=None,
    responses=_ANSWER,
    openapi_extra=_REQUEST_BODY,
    summary="Tensors of labels for new images from a given version",
)
async def infer_with_version(request: Request, model: ModelName, version: VersionName) -> Response:
    """As `infer` of the model, from this version whatever the aliases say."""
    return await _infer(request, numbered(model, version))


async def _infer(request: Request, reference: str) -> Response:
    async with open_context(request, reference) as context:
        _check_encoding(request)
        inference = await run_in_threadpool(
            read_request,
            await context.read_body(),  # no variable: it is freed as soon as it is parsed
            request.headers.get(binary.HEADER),
            context.target,
            context.runtime.settings,
        )
        # The first image was reserved with the body.
        context.reservation.take(images=max(0, len(inference.inputs.images) - 1))
        outcomes = await context.predict(inference.inputs, inference.seconds)
        return await run_in_threadpool(to_response, inference, context.target, outcomes)


def _check_encoding(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise UnsupportedMediaType(f"A body with the encoding {encoding!r} is not read here.")
