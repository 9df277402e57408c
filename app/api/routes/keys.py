"""API keys, for those who have one with the scope `admin`."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from app.api.http.access import ApiKeyAuth, GuardedRoute
from app.api.http.dependencies import ListingDep, RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.schemas.access import CreatedKey, Key, KeyCreate
from app.api.schemas.common import Page
from app.core.access.keys import create_key, revoke_key, select_keys
from app.core.platform.actor import ANYONE
from app.core.platform.errors import FirstKeyIsLocal
from app.core.platform.tables import ApiKey

_FIRST_KEY = (
    "This service has no key yet. Make the first one on its machine: "
    "`temi keys create NAME --scope admin`."
)
router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/keys",
    tags=["access"],
    dependencies=[Depends(ApiKeyAuth("admin"))],
    responses=responses(422, 503),
)


@router.post("", status_code=201, summary="Make a key")
def make_key(
    body: KeyCreate, request: Request, response: Response, runtime: RuntimeDep, tenant: TenantDep
) -> CreatedKey:
    """For your own tenant. The key is in this answer and never again; an `Idempotency-Key` has no
    effect here, since that would need the answer to be stored. The first key is made on the
    machine of the service, by `temi keys create`; until then this is refused with
    `first_key_is_local`."""
    if request.state.actor is ANYONE:
        raise FirstKeyIsLocal(_FIRST_KEY)
    with runtime.db.write() as session:
        row, text = create_key(session, tenant=tenant, **body.model_dump())
    request.app.state.access.keys.forget()
    response.headers["Cache-Control"] = "no-store"
    return CreatedKey(**Key.of(row).model_dump(), key=text)


@router.get("", response_model=Page[Key], summary="List keys, newest first")
def list_keys(listing: ListingDep, tenant: TenantDep) -> dict[str, Any]:
    """Of your own tenant, also those that were revoked."""
    return listing.page(select_keys(tenant), ApiKey.id, Key.of, descending=True)


@router.delete("/{key_id}", status_code=204, responses=responses(404), summary="Revoke a key")
def delete_key(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    key_id: Annotated[str, Path(max_length=40)],
) -> None:
    """For good, and within seconds everywhere. It stays listed, and what was done with it stays
    in the audit log."""
    with runtime.db.write() as session:
        revoke_key(session, key_id, tenant=tenant)
    request.app.state.access.keys.forget()
