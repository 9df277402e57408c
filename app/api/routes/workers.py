"""Who works for this service."""

from typing import Any

from fastapi import APIRouter
from sqlalchemy import and_, select

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import ListingDep, RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.core.jobs.workers import is_alive
from app.core.platform.tables import Job, Worker

router = APIRouter(
    route_class=GuardedRoute, prefix="/v1/workers", tags=["workers"], responses=responses(422, 503)
)


@router.get("", response_model=schemas.Page[schemas.Worker], summary="List workers by name")
def list_workers(listing: ListingDep, runtime: RuntimeDep, tenant: TenantDep) -> dict[str, Any]:
    """Those that were heard of lately. They serve all tenants; `job_id` and `stage` are told only
    of your own jobs."""
    of_ours = and_(Job.id == Worker.job_id, Job.tenant == tenant)
    query = (
        select(Worker, Job.id)
        .outerjoin(Job, of_ours)
        .where(is_alive(runtime.settings.lease_seconds))
    )
    return listing.page(query, Worker.name, schemas.Worker.of)
