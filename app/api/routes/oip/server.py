"""What the protocol says of the server as a whole. Open to everybody, as `/livez` is."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from app.api import schemas
from app.core.health import Health

router = APIRouter(prefix="/v2", tags=["inference protocol"])


@router.get("", summary="Name, version and extensions of the server")
async def read_server(request: Request) -> schemas.ServerMetadata:
    return schemas.ServerMetadata(
        name="temi", version=request.app.version, extensions=["binary_tensor_data"]
    )


@router.get("/health/live", summary="The process answers, in the protocol's words")
async def live() -> schemas.ServerLive:
    return schemas.ServerLive(live=True)


@router.get(
    "/health/ready",
    response_model=schemas.ServerReady,
    responses={503: {"model": schemas.ServerReady, "description": "Something is missing"}},
    summary="Everything it needs is there, in the protocol's words",
)
async def ready(request: Request) -> JSONResponse:
    """As `/readyz`. Models are loaded when somebody asks for them and have a readiness of their
    own."""
    health: Health = request.app.state.health
    findings = await health.check_async()
    wrong = [f"{name}: {found.detail}" for name, found in findings.items() if not found.ok]
    body = schemas.ServerReady(ready=not wrong, error="; ".join(wrong) or None)
    return JSONResponse(body.model_dump(), status_code=503 if wrong else 200)
