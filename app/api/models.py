"""The model registry."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.deps import ListingDep, RuntimeDep, SessionDep, TenantDep
from app.api.errors import responses
from app.core import registry
from app.core.tables import Model, ModelVersion

router = APIRouter(prefix="/v1/models", tags=["models"], responses=responses(401, 422, 503))

Name = Annotated[str, Path(max_length=100, description="The model's name.")]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]


def load_model(session: SessionDep, tenant: TenantDep, name: Name) -> Model:
    return registry.get_model(session, tenant, name)


ModelDep = Annotated[Model, Depends(load_model)]


def _show(session: Session, model: Model) -> schemas.Model:
    return schemas.Model(
        name=model.name,
        latest_version=model.latest_version,
        aliases=registry.aliases(session, model),
        created_at=schemas.to_time(model.created_at),
    )


@router.get("", response_model=schemas.Page[schemas.Model], summary="List models by name")
def list_models(listing: ListingDep, session: SessionDep, tenant: TenantDep) -> dict[str, Any]:
    query = select(Model).where(Model.tenant == tenant)
    return listing.page(query, Model.name, lambda model: _show(session, model))


@router.get("/{name}", responses=responses(404), summary="Look at a model and its aliases")
def read_model(session: SessionDep, model: ModelDep) -> schemas.Model:
    return _show(session, model)


@router.get(
    "/{name}/versions",
    response_model=schemas.Page[schemas.ModelVersion],
    responses=responses(404, 422),
    summary="List a model's versions, newest first",
)
def list_versions(listing: ListingDep, model: ModelDep) -> dict[str, Any]:
    query = select(ModelVersion).where(ModelVersion.model_id == model.id)
    show = partial(schemas.ModelVersion.of, model.name)
    return listing.page(query, ModelVersion.version, show, descending=True)


@router.get(
    "/{name}/versions/{version}",
    responses=responses(404),
    summary="Look at a version and its manifest",
)
def read_version(session: SessionDep, model: ModelDep, version: Version) -> schemas.ModelVersion:
    return schemas.ModelVersion.of(model.name, registry.get_version(session, model, version))


@router.put(
    "/{name}/aliases/{alias}",
    responses=responses(404, 422),
    summary="Point an alias at a version",
)
def put_alias(
    runtime: RuntimeDep,
    tenant: TenantDep,
    name: Name,
    alias: Annotated[str, Path(max_length=64)],
    body: schemas.AliasUpdate,
) -> schemas.Model:
    """Clients that ask for `name@alias` get the new version from the next request on."""
    with runtime.db.write() as session:
        model = registry.get_model(session, tenant, name)
        registry.set_alias(session, model, alias, body.version)
        return _show(session, model)


@router.delete(
    "/{name}/aliases/{alias}",
    status_code=204,
    responses=responses(404),
    summary="Remove an alias",
)
def delete_alias(
    runtime: RuntimeDep, tenant: TenantDep, name: Name, alias: Annotated[str, Path(max_length=64)]
) -> None:
    with runtime.db.write() as session:
        registry.remove_alias(session, registry.get_model(session, tenant, name), alias)
