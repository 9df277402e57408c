"""Aliases of models: moved, rolled back, removed, and the history of it all."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import (
    ActorDep,
    IdempotencyKeyHeader,
    ListingDep,
    ReferencesDep,
    RuntimeDep,
    SessionDep,
)
from app.api.http.errors import responses
from app.api.routes.models import ModelDep, Name
from app.core import models as registry
from app.core.platform import idempotency
from app.core.platform.tables import ModelAliasChange

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/models/{name}/aliases",
    tags=["models"],
    responses=responses(401, 404, 422, 503),
)
Alias = Annotated[str, Path(max_length=64)]


@router.put("/{alias}", summary="Point an alias at a version")
def put_alias(
    runtime: RuntimeDep,
    references: ReferencesDep,
    actor: ActorDep,
    name: Name,
    alias: Alias,
    body: schemas.AliasUpdate,
) -> schemas.Model:
    """Clients that ask for `name@alias` get the new version from the next request on. A version
    whose files are damaged is refused with `model_integrity`, and the alias stays."""
    registry.check_alias(alias)
    references.prepare(actor.tenant, f"{name}/versions/{body.version}")
    with runtime.db.write() as session:
        model = registry.get_model(session, actor.tenant, name, lock=True)
        registry.set_alias(session, model, alias, body.version, changed_by=actor.key_name)
        shown = schemas.Model.of(model, registry.aliases(session, model))
    references.forget(actor.tenant, name)
    return shown


@router.delete("/{alias}", status_code=204, summary="Remove an alias")
def delete_alias(
    runtime: RuntimeDep, references: ReferencesDep, actor: ActorDep, name: Name, alias: Alias
) -> None:
    """Its history stays; one that is set again under this name has nothing to roll back to."""
    with runtime.db.write() as session:
        model = registry.get_model(session, actor.tenant, name, lock=True)
        registry.remove_alias(session, model, alias, changed_by=actor.key_name)
    references.forget(actor.tenant, name)


@router.post(
    "/{alias}:rollback", responses=responses(409), summary="Point an alias at what it was before"
)
def rollback_alias(
    runtime: RuntimeDep,
    references: ReferencesDep,
    actor: ActorDep,
    name: Name,
    alias: Alias,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.Model:
    """Takes back the last move; a second rollback takes back the one before it, and so on. Versions
    that were deleted meanwhile are passed over; `nothing_to_roll_back` if none is left. A version
    whose files are damaged is refused with `model_integrity`, and the alias stays."""
    prepared: set[int] = set()

    def roll_back(session: Session) -> dict[str, Any]:
        model = registry.get_model(session, actor.tenant, name, lock=True)
        target = registry.rollback_target(session, model, alias)
        if target.version not in prepared:
            raise _Unprepared(target.version)
        registry.rollback_alias(session, model, alias, target, changed_by=actor.key_name)
        shown = schemas.Model.of(model, registry.aliases(session, model))
        return shown.model_dump(mode="json")

    request_hash = hashlib.sha256(f"models/{name}/aliases/{alias}:rollback".encode()).hexdigest()
    with idempotency.in_flight(actor.tenant, idempotency_key):
        while True:  # until nobody moves the alias while its next version is prepared
            try:
                answer, _ = idempotency.answer_once(
                    runtime.db, actor.tenant, idempotency_key, request_hash, roll_back
                )
            except _Unprepared as found:
                references.prepare(actor.tenant, f"{name}/versions/{found.version}")
                prepared.add(found.version)
            else:
                break
    references.forget(actor.tenant, name)
    return schemas.Model.model_validate(answer)


@router.get(
    "/{alias}/history",
    response_model=schemas.Page[schemas.AliasChange],
    summary="List the moves of an alias, newest first",
)
def list_changes(
    listing: ListingDep, session: SessionDep, model: ModelDep, alias: Alias
) -> dict[str, Any]:
    """Who moved it, when, from where and to where; also of an alias that was removed."""
    query = registry.alias_changes(session, model, alias)
    return listing.page(query, ModelAliasChange.number, schemas.AliasChange.of, descending=True)


class _Unprepared(Exception):
    """The transaction is left: no lock is held while files are read."""

    def __init__(self, version: int) -> None:
        self.version = version
