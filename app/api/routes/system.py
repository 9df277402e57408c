"""Liveness, readiness and metrics."""

import asyncio

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from app.api import schemas
from app.api.http.errors import responses
from app.api.metrics import Metrics
from app.core.health import Health

router = APIRouter(tags=["system"])


@router.get("/livez", summary="Check liveness")
async def check_live() -> dict[str, bool]:
    """Responds while the process runs, whatever else has failed."""
    return {"alive": True}


@router.get(
    "/readyz",
    response_model=schemas.Readiness,
    responses={
        503: {"model": schemas.Readiness, "description": "A check failed"},
        **responses(421),
    },
    summary="Check readiness",
)
async def check_ready(request: Request) -> JSONResponse:
    """Checks the database, its migrations, the broker, the storage, the weights and the workers;
    a failed check says what to do. A new process is ready when it has loaded the models that are
    in use. Responds within three seconds, also if one of them does not respond."""
    health: Health = request.app.state.health
    results = await health.check_async()
    body = schemas.Readiness(
        version=request.app.version,
        ready=all(result.ok for result in results.values()),
        checks={
            name: schemas.Check(
                ok=result.ok,
                status=result.status,
                detail=result.detail,
                hint=result.hint,
                seconds=round(result.seconds, 4),
            )
            for name, result in results.items()
        },
    )
    return JSONResponse(body.model_dump(), status_code=200 if body.ready else 503)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}, **responses(421)},
    summary="Read metrics for Prometheus",
)
async def read_metrics(request: Request) -> Response:
    """Metrics of requests, predictions, jobs and the disk; docs/operations.md describes them."""
    shown: Metrics = request.app.state.metrics
    text = await asyncio.wrap_future(shown.render())
    return Response(text, media_type="text/plain; version=0.0.4")
