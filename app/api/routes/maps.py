"""The map that a job has drawn."""

from fastapi import APIRouter
from fastapi.responses import FileResponse

from app.api.http.access import GuardedRoute
from app.api.http.dependencies import RuntimeDep
from app.api.http.errors import responses
from app.api.http.open_responses import OneDownload
from app.api.routes.jobs import JobDep
from app.core.jobs.requests.map import map_key
from app.core.platform.errors import JobUnfinished, NotFound
from app.core.platform.tables import OPEN, Job

router = APIRouter(
    route_class=GuardedRoute, prefix="/v1/jobs", tags=["jobs"], responses=responses(401, 422, 503)
)

_ARROW = "application/vnd.apache.arrow.file"


@router.get(
    "/{job_id}/map",
    dependencies=[OneDownload],
    response_class=FileResponse,
    responses={**responses(404, 409), 200: {"content": {_ARROW: {}}}},
    summary="The map of a dataset",
)
def read_map(runtime: RuntimeDep, job: JobDep) -> FileResponse:
    """An Arrow file with `image_id`, `x` and `y` (float32, from -1 to 1); range requests are
    answered."""
    if job.kind != "map":
        raise NotFound(f"The job {job.id} draws no map; it is of kind {job.kind}.")
    if job.status in OPEN:
        raise JobUnfinished("The map is not drawn yet; wait for its job.")
    if job.status != "succeeded":
        raise _no_map(job)
    try:
        path = runtime.storage.path(map_key(job.id))
    except FileNotFoundError as error:
        raise _no_map(job) from error
    return FileResponse(path, media_type=_ARROW, filename=f"{job.id}.arrow")


def _no_map(job: Job) -> NotFound:
    return NotFound(f"The job {job.id} has left no map.")
