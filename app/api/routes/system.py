"""For those who run the service: is it alive, is it ready, how is it doing."""

import asyncio
import re
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import FileResponse, JSONResponse

from app.api import schemas
from app.api.metrics import Metrics
from app.core.health import Health

router = APIRouter(tags=["system"])
_META_POLICY = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
_PAGE = Path(__file__).parents[2] / "static" / "index.html"


@router.get("/livez", summary="The process answers")
async def livez() -> dict[str, bool]:
    return {"alive": True}


@router.get(
    "/readyz",
    response_model=schemas.Readiness,
    responses={503: {"model": schemas.Readiness, "description": "Something is missing"}},
    summary="Everything it needs is there",
)
async def readyz(request: Request) -> JSONResponse:
    """Names what is wrong with the database, its migrations, the broker, the storage, the weights
    or the workers, and what to do about it. A process that starts is ready when it has loaded the
    models that are in use. Answers within three seconds, also when one of them
    does not answer at all."""
    health: Health = request.app.state.health
    findings = await health.check_async()
    body = schemas.Readiness(
        ready=all(finding.ok for finding in findings.values()),
        checks={
            name: schemas.Check(
                ok=finding.ok,
                status=finding.status,
                detail=finding.detail,
                hint=finding.hint,
                seconds=round(finding.seconds, 4),
            )
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
async def metrics(request: Request) -> Response:
    """Requests, predictions, jobs and the disk; docs/operations.md says what each figure means."""
    shown: Metrics = request.app.state.metrics
    text = await asyncio.wrap_future(shown.render())
    return Response(text, media_type="text/plain; version=0.0.4")


@router.get("/", include_in_schema=False)
def page() -> FileResponse:
    headers = {"Content-Security-Policy": page_policy()}
    return FileResponse(_PAGE, media_type="text/html", headers=headers)


@cache
def page_policy() -> str:
    """What the page allows itself, as a header: that may also forbid frames."""
    found = _META_POLICY.search(_PAGE.read_text(encoding="utf-8"))
    assert found is not None, "the page has a Content-Security-Policy"
    return f"{found[1]}; frame-ancestors 'none'"
