"""Labels for new images, asked for in tensors."""

from dataclasses import dataclass
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool

from app.api import schemas
from app.api.http.access import ApiKeyAuth, GuardedRoute
from app.api.http.bodies import inlined
from app.api.routes.oip import binary
from app.api.routes.oip.addresses import ModelName, VersionName, numbered, refusals
from app.api.routes.oip.answers import to_response
from app.api.routes.oip.requests import read_request
from app.api.routes.predict_place import arriving, reserve_capacity
from app.core.platform.errors import UnsupportedMediaType
from app.core.runtime import Runtime
from app.core.serving import Serving
from app.core.serving.admission import Reservation
from app.core.serving.references import References

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


@dataclass(frozen=True)
class InferContext:
    """All that an answer needs, found once a request."""

    request: Request
    runtime: Runtime
    serving: Serving
    references: References
    tenant: str


def _infer_context(request: Request) -> InferContext:
    state = request.app.state
    return InferContext(
        request, state.runtime, state.serving, state.references, request.state.actor.tenant
    )


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
    with reserve_capacity(request) as place:
        return await _infer(_infer_context(request), model, place)


@router.post(
    "/{model}/versions/{version}/infer",
    response_model=None,
    responses=_ANSWER,
    openapi_extra=_REQUEST_BODY,
    summary="Tensors of labels for new images from a given version",
)
async def infer_with_version(request: Request, model: ModelName, version: VersionName) -> Response:
    """As `infer` of the model, from this version whatever the aliases say."""
    with reserve_capacity(request) as place:
        return await _infer(_infer_context(request), numbered(model, version), place)


async def _infer(asking: InferContext, reference: str, place: Reservation) -> Response:
    target = await asking.references.resolve(asking.tenant, reference)
    inference = await run_in_threadpool(
        read_request,
        await _read_body(asking.request, place),  # nobody holds it after it is read
        asking.request.headers.get(binary.HEADER),
        target,
        asking.runtime.settings,
    )
    place.take(images=max(0, len(inference.images) - 1))  # the first has its place already
    outcomes = await asking.serving.predict(
        target.files,
        inference.images,
        features=inference.features,
        seconds=inference.seconds,
    )
    return await run_in_threadpool(to_response, inference, target, outcomes)


async def _read_body(request: Request, place: Reservation) -> bytes:
    encoding = request.headers.get("content-encoding", "identity")
    if encoding != "identity":
        raise UnsupportedMediaType(f"A body with the encoding {encoding!r} is not read here.")
    body = bytearray()
    async for chunk in arriving(request, place):
        body += chunk
    place.arrived(images=1)
    return bytes(body)
