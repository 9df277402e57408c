"""Who changed what."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime

from app.api.http.access import ApiKeyAuth, GuardedRoute
from app.api.http.dependencies import ListingDep, TenantDep
from app.api.http.errors import responses
from app.api.schemas.access import AuditEntry as ShownEntry
from app.api.schemas.common import Page
from app.core.platform.audit import select_entries
from app.core.platform.tables import AuditEntry

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/audit",
    tags=["access"],
    dependencies=[Depends(ApiKeyAuth("admin"))],
    responses=responses(422, 503),
)


@router.get("", response_model=Page[ShownEntry], summary="List who changed what, newest first")
def list_audit(
    listing: ListingDep,
    tenant: TenantDep,
    key_id: Annotated[str | None, Query(max_length=40)] = None,
    since: Annotated[AwareDatetime | None, Query(description="Not what was earlier.")] = None,
) -> dict[str, Any]:
    """One entry for each request that changed something of your tenant, written together with the
    change. Requests that only looked, or failed, leave none."""
    query = select_entries(tenant, key_id=key_id, since=since.timestamp() if since else None)
    return listing.page(query, AuditEntry.id, ShownEntry.of, descending=True)
