"""Metadata and health of the server, by the Open Inference Protocol. No key is required."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from app.api import schemas
from app.api.http.errors import InferenceProblem, responses
from app.core.health import Health

router = APIRouter(prefix="/v2", tags=["inference protocol"])


@router.get(
    "", responses=responses(421, model=InferenceProblem), summary="Read the metadata of the server"
)
async def read_server_metadata(request: Request) -> schemas.ServerMetadata:
    """Name, version, and the supported extensions of the protocol."""
    return schemas.ServerMetadata(
        name="temi", version=request.app.version, extensions=["binary_tensor_data"]
    )


@router.get("/health/live", summary="Check liveness of the server")
async def check_server_live() -> schemas.ServerLive:
    """As `/livez`."""
    return schemas.ServerLive(live=True)


@router.get(
    "/health/ready",
    response_model=schemas.ServerReady,
    responses={
        503: {"model": schemas.ServerReady, "description": "A check failed"},
        **responses(421, model=InferenceProblem),
    },
    summary="Check readiness of the server",
)
async def check_server_ready(request: Request) -> JSONResponse:
    """As `/readyz`. Each model has a readiness check of its own."""
    health: Health = request.app.state.health
    results = await health.check_async()
    failed = [f"{name}: {result.detail}" for name, result in results.items() if not result.ok]
    body = schemas.ServerReady(ready=not failed, error="; ".join(failed) or None)
    return JSONResponse(body.model_dump(), status_code=503 if failed else 200)
