"""Plots of a job."""

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Response

from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import IfNoneMatchHeader, RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pictures import (
    PLOT_RESPONSES,
    PlotFormat,
    image_response,
    not_modified,
)
from app.api.routes.jobs import JobId
from app.core.clusterings.plots import render
from app.core.jobs.lifecycle import get_job
from app.core.jobs.plots import load_sweep_plot

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/jobs",
    tags=["jobs"],
    responses=responses(401, 404, 422, 503),
)


@router.get(
    "/{job_id}/plots/{name}",
    response_class=Response,
    responses=PLOT_RESPONSES,
    summary="Draw a plot of a job",
)
def read_job_plot(
    runtime: RuntimeDep,
    tenant: TenantDep,
    job_id: JobId,
    name: Annotated[
        Literal["sweep"],
        Path(
            description="`sweep`: doubt, confidence, evenness of the sizes and accuracy over the "
            "values of a sweep, with the suggested value."
        ),
    ],
    image_format: PlotFormat = "png",
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """A PNG or SVG of the values that are finished, while the job runs and after it."""
    with runtime.db.read() as session:
        job = get_job(session, tenant, job_id)
        tag = f"{job.version}-{name}-{image_format}"
        if (response := not_modified(tag, if_none_match)) is not None:
            return response
        drawing = load_sweep_plot(session, job)
    return image_response(render(drawing, image_format), image_format, tag)
