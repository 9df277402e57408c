"""For those who run the service: is it alive, is it ready, how is it doing."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from app.api import schemas
from app.api.deps import RuntimeDep
from app.core.health import check_health

router = APIRouter(tags=["system"])
_PAGE = Path(__file__).parents[1] / "static" / "index.html"


@router.get("/livez", summary="The process answers")
async def livez() -> dict[str, bool]:
    return {"alive": True}


@router.get(
    "/readyz",
    response_model=schemas.Readiness,
    responses={503: {"model": schemas.Readiness, "description": "Something is missing"}},
    summary="Everything it needs is there",
)
def readyz(runtime: RuntimeDep) -> JSONResponse:
    """Names what is wrong: database, broker, storage or weights."""
    findings = check_health(runtime)
    body = schemas.Readiness(
        ready=all(finding.ok for finding in findings.values()),
        checks={
            name: schemas.Check(ok=finding.ok, detail=finding.detail)
            for name, finding in findings.items()
        },
    )
    return JSONResponse(body.model_dump(), status_code=200 if body.ready else 503)


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}}},
    summary="Figures for Prometheus",
)
def metrics(request: Request) -> Response:
    return Response(request.app.state.metrics.render(), media_type="text/plain; version=0.0.4")


@router.get("/", include_in_schema=False)
def page() -> FileResponse:
    return FileResponse(_PAGE, media_type="text/html")
