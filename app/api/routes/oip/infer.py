"""Predictions as tensors."""

from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.openapi_bodies import BINARY, body_ref
from app.api.inference import open_context
from app.api.routes.oip import binary
from app.api.routes.oip.models import ModelName, VersionName, error_responses, version_reference
from app.api.routes.oip.requests import read_request
from app.api.routes.oip.responses import to_response
from app.core.platform.errors import UnsupportedMediaType

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v2/models",
    tags=["inference protocol"],
    responses=error_responses(413, 415),
    dependencies=[Depends(ApiKeyAuth("predict"))],
)
_BINARY = {"application/octet-stream": {"schema": BINARY}}
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
            "description": "The length of the JSON, if binary tensors follow it.",
        }
    ],
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": body_ref(schemas.InferRequest),
                "example": _EXAMPLE,
            },
            **_BINARY,
        },
    },
}
_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"model": schemas.InferResponse, "description": "Tensors", "content": _BINARY},
}


@router.post(
    "/{model}/infer",
    response_model=None,
    responses=_RESPONSES,
    openapi_extra=_REQUEST_BODY,
    summary="Infer clusters of images",
)
async def infer(request: Request, model: ModelName) -> Response:
    """As `/v1/models/{name}:predict`, by the Open Inference Protocol. The input is `images` or
    `embeddings`; the outputs are cluster, label and probabilities. An image that cannot be read
    gets cluster -1 and a text in `error`; the request fails only if no image can be read."""
    return await _infer(request, model)


@router.post(
    "/{model}/versions/{version}/infer",
    response_model=None,
    responses=_RESPONSES,
    openapi_extra=_REQUEST_BODY,
    summary="Infer clusters of images with a version",
)
async def infer_with_version(request: Request, model: ModelName, version: VersionName) -> Response:
    """As `infer` of the model, with this version."""
    return await _infer(request, version_reference(model, version))


async def _infer(request: Request, reference: str) -> Response:
    async with open_context(request, reference) as context:
        _check_encoding(request)
        inference = await run_in_threadpool(
            read_request,
            await context.read_body(),  # no variable: it is freed as soon as it is parsed
            request.headers.get(binary.HEADER),
            context.model,
            context.runtime.settings,
        )
        # The first image was reserved with the body.
        context.reservation.add(images=max(0, len(inference.inputs.images) - 1))
        outcomes = await context.predict(inference.inputs, inference.seconds)
        return await run_in_threadpool(to_response, inference, context.model, outcomes)


def _check_encoding(request: Request) -> None:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise UnsupportedMediaType(f"The Content-Encoding {encoding!r} is not supported.")
