"""Aliases of models: set, roll back, remove, and their history."""

import hashlib
from typing import Annotated, Any

from fastapi import APIRouter, Path
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import (
    ActorDep,
    IdempotencyKeyHeader,
    ResolverDep,
    RuntimeDep,
    SessionDep,
)
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.routes.models import ModelDep, Name
from app.core.models import registry
from app.core.platform import idempotency
from app.core.platform.tables import ModelAliasChange

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/models/{name}/aliases",
    tags=["models"],
    responses=responses(401, 404, 422, 503),
)
Alias = Annotated[str, Path(max_length=64)]


@router.put("/{alias}", summary="Set an alias")
def set_alias(
    runtime: RuntimeDep,
    resolver: ResolverDep,
    actor: ActorDep,
    name: Name,
    alias: Alias,
    body: schemas.AliasUpdate,
) -> schemas.Model:
    """`name@alias` means this version from the next request on. If the files of the version are
    damaged, the error is `model_integrity` and the alias does not move."""
    registry.check_alias(alias)
    resolver.prepare(actor.tenant, f"{name}/versions/{body.version}")
    with runtime.db.write() as session:
        model = registry.get_model(session, actor.tenant, name, lock=True)
        registry.set_alias(session, model, alias, body.version, changed_by=actor.key_name)
        shown = schemas.Model.of(model, registry.aliases(session, model))
    resolver.invalidate(actor.tenant, name)
    return shown


@router.delete("/{alias}", status_code=204, summary="Remove an alias")
def delete_alias(
    runtime: RuntimeDep, resolver: ResolverDep, actor: ActorDep, name: Name, alias: Alias
) -> None:
    """Its history stays. If the alias is set again, it cannot be rolled back to before."""
    with runtime.db.write() as session:
        model = registry.get_model(session, actor.tenant, name, lock=True)
        registry.remove_alias(session, model, alias, changed_by=actor.key_name)
    resolver.invalidate(actor.tenant, name)


@router.post("/{alias}:rollback", responses=responses(409), summary="Roll back an alias")
def rollback_alias(
    runtime: RuntimeDep,
    resolver: ResolverDep,
    actor: ActorDep,
    name: Name,
    alias: Alias,
    idempotency_key: IdempotencyKeyHeader = None,
) -> schemas.Model:
    """Undoes the last move; a second rollback undoes the move before it. Deleted versions are
    skipped; `nothing_to_roll_back` if none is left. If the files of the version are damaged, the
    error is `model_integrity` and the alias does not move."""
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
        while True:  # repeats if the alias was moved while its next version was prepared
            try:
                answer, _ = idempotency.answer_once(
                    runtime.db, actor.tenant, idempotency_key, request_hash, roll_back
                )
            except _Unprepared as found:
                resolver.prepare(actor.tenant, f"{name}/versions/{found.version}")
                prepared.add(found.version)
            else:
                break
    resolver.invalidate(actor.tenant, name)
    return schemas.Model.model_validate(answer)


@router.get(
    "/{alias}/history",
    response_model=schemas.Page[schemas.AliasChange],
    summary="List the history of an alias, newest first",
)
def list_alias_changes(
    listing: ListingDep, session: SessionDep, model: ModelDep, alias: Alias
) -> dict[str, Any]:
    """Each move with its key, time and versions; also for an alias that was removed."""
    query = registry.alias_changes(session, model, alias)
    return listing.page(query, ModelAliasChange.number, schemas.AliasChange.of, descending=True)


class _Unprepared(Exception):
    """Leaves the transaction, so that no lock is held while files are read."""

    def __init__(self, version: int) -> None:
        self.version = version
