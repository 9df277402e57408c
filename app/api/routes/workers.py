"""The workers of the service."""

from typing import Any

from fastapi import APIRouter

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.core.jobs.workers import select_workers
from app.core.platform.tables import Worker

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/workers",
    tags=["workers"],
    responses=responses(422, 503),
)


@router.get("", response_model=schemas.Page[schemas.Worker], summary="List workers by name")
def list_workers(listing: ListingDep, runtime: RuntimeDep, tenant: TenantDep) -> dict[str, Any]:
    """Workers with a recent heartbeat. They serve all tenants; `job_id` and `stage` are shown only
    for your own jobs."""
    query = select_workers(tenant, runtime.settings.lease_seconds)
    return listing.page(query, Worker.name, schemas.Worker.of)
