"""API keys; requires the scope `admin`."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response

from app.api.http.auth import ApiKeyAuth, AuthenticatedRoute
from app.api.http.dependencies import RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.schemas.access import CreatedKey, Key, KeyCreate
from app.api.schemas.common import Page
from app.core.access import keys
from app.core.platform.actor import ANONYMOUS
from app.core.platform.errors import FirstKeyIsLocal
from app.core.platform.tables import ApiKey

_FIRST_KEY = (
    "This service has no key yet. Create the first one on its machine: "
    "`temi keys create NAME --scope admin`."
)
router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/keys",
    tags=["access"],
    dependencies=[Depends(ApiKeyAuth("admin"))],
    responses=responses(422, 503),
)


@router.post("", status_code=201, summary="Create a key")
def create_key(
    body: KeyCreate, request: Request, response: Response, runtime: RuntimeDep, tenant: TenantDep
) -> CreatedKey:
    """For your own tenant. Only this response contains the key. An `Idempotency-Key` has no effect
    here, since the response is not stored. The first key is created on the machine of the service
    by `temi keys create`; until then the error is `first_key_is_local`."""
    if request.state.actor is ANONYMOUS:
        raise FirstKeyIsLocal(_FIRST_KEY)
    with runtime.db.write() as session:
        row, text = keys.create_key(session, tenant=tenant, **body.model_dump())
    request.app.state.access.keys.clear()
    response.headers["Cache-Control"] = "no-store"
    return CreatedKey(**Key.of(row).model_dump(), key=text)


@router.get("", response_model=Page[Key], summary="List keys, newest first")
def list_keys(listing: ListingDep, tenant: TenantDep) -> dict[str, Any]:
    """Keys of your tenant, revoked ones included."""
    return listing.page(keys.select_keys(tenant), ApiKey.id, Key.of, descending=True)


@router.delete("/{key_id}", status_code=204, responses=responses(404), summary="Revoke a key")
def revoke_key(
    request: Request,
    runtime: RuntimeDep,
    tenant: TenantDep,
    key_id: Annotated[str, Path(max_length=40)],
) -> None:
    """Permanent; takes effect in all processes within seconds. The key stays in the list, and its
    entries stay in the audit log."""
    with runtime.db.write() as session:
        keys.revoke_key(session, key_id, tenant=tenant)
    request.app.state.access.keys.clear()
