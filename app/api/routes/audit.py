"""The audit log."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query
from pydantic import AwareDatetime

from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.dependencies import TenantDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.schemas.access import AuditEntry as ShownEntry
from app.api.schemas.common import Page
from app.core.platform.audit import select_entries
from app.core.platform.tables import AuditEntry

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/audit",
    tags=["access"],
    dependencies=[Depends(ApiKeyAuth("admin"))],
    responses=responses(422, 503),
)


@router.get("", response_model=Page[ShownEntry], summary="List audit entries, newest first")
def list_audit_entries(
    listing: ListingDep,
    tenant: TenantDep,
    key_id: Annotated[str | None, Query(max_length=40)] = None,
    since: Annotated[
        AwareDatetime | None, Query(description="Only entries from this time on.")
    ] = None,
) -> dict[str, Any]:
    """One entry for each request that changed data of your tenant, written in the same transaction.
    Requests that only read, or failed, have no entry."""
    query = select_entries(tenant, key_id=key_id, since=since.timestamp() if since else None)
    return listing.page(query, AuditEntry.id, ShownEntry.of, descending=True)
