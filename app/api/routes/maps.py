"""The result of a map job."""

from fastapi import APIRouter
from fastapi.responses import FileResponse

from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep
from app.api.http.errors import responses
from app.api.http.limits import DownloadLimit
from app.api.routes.jobs import JobDep
from app.core.jobs.requests.map import map_key
from app.core.platform.errors import JobUnfinished, NotFound
from app.core.platform.tables import OPEN, Job

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/jobs",
    tags=["jobs"],
    responses=responses(401, 422, 503),
)

_ARROW = "application/vnd.apache.arrow.file"


@router.get(
    "/{job_id}/map",
    dependencies=[DownloadLimit],
    response_class=FileResponse,
    responses={**responses(404, 409), 200: {"content": {_ARROW: {}}}},
    summary="Download a map",
)
def download_map(runtime: RuntimeDep, job: JobDep) -> FileResponse:
    """An Arrow file with `image_id`, `x` and `y` (float32, from -1 to 1). Range requests are
    supported."""
    if job.kind != "map":
        raise NotFound(f"The job {job.id} has no map; it is of kind {job.kind}.")
    if job.status in OPEN:
        raise JobUnfinished(f"The map is not ready; wait for the job {job.id}.")
    if job.status != "succeeded":
        raise _no_map(job)
    try:
        path = runtime.storage.path(map_key(job.id))
    except FileNotFoundError as error:
        raise _no_map(job) from error
    return FileResponse(path, media_type=_ARROW, filename=f"{job.id}.arrow")


def _no_map(job: Job) -> NotFound:
    return NotFound(f"The job {job.id} has no map.")
