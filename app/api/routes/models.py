"""The model registry: models and their versions."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import ListingDep, ReferencesDep, RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.core import models as registry
from app.core.models import deletion
from app.core.models.queries import select_models, select_versions
from app.core.platform.tables import Model, ModelVersion
from app.core.storage.gc.retention import delete_unless_retained

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/models",
    tags=["models"],
    responses=responses(401, 422, 503),
)

Name = Annotated[str, Path(max_length=100, description="The model's name.")]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]


def load_model(session: SessionDep, tenant: TenantDep, name: Name) -> Model:
    return registry.get_model(session, tenant, name)


ModelDep = Annotated[Model, Depends(load_model)]


@router.get("", response_model=schemas.Page[schemas.Model], summary="List models by name")
def list_models(listing: ListingDep, session: SessionDep, tenant: TenantDep) -> dict[str, Any]:
    return listing.page(
        select_models(tenant),
        Model.name,
        lambda model: schemas.Model.of(model, registry.aliases(session, model)),
    )


@router.get("/{name}", responses=responses(404), summary="Look at a model and its aliases")
def read_model(session: SessionDep, model: ModelDep) -> schemas.Model:
    return schemas.Model.of(model, registry.aliases(session, model))


@router.delete("/{name}", status_code=204, responses=responses(404, 409), summary="Delete a model")
def delete_model(
    runtime: RuntimeDep, references: ReferencesDep, tenant: TenantDep, name: Name
) -> None:
    """All its versions with their files. `version_in_use` while an alias points to one of them or
    an unfinished job uses it; then nothing is deleted. Clusterings that they made stay. A model
    that gets the same name later goes on with the next number."""
    with runtime.db.write() as session:
        folders = deletion.delete_model(session, tenant, name)
    references.forget(tenant, name)
    delete_unless_retained(runtime.db, runtime.storage, folders)


@router.get(
    "/{name}/versions",
    response_model=schemas.Page[schemas.ModelVersion],
    responses=responses(404, 422),
    summary="List a model's versions, newest first",
)
def list_versions(listing: ListingDep, model: ModelDep) -> dict[str, Any]:
    show = partial(schemas.ModelVersion.of, model.name)
    return listing.page(select_versions(model), ModelVersion.version, show, descending=True)


@router.get(
    "/{name}/versions/{version}",
    responses=responses(404),
    summary="Look at a version and its manifest",
)
def read_version(session: SessionDep, model: ModelDep, version: Version) -> schemas.ModelVersion:
    return schemas.ModelVersion.of(model.name, registry.get_version(session, model, version))


@router.delete(
    "/{name}/versions/{version}",
    status_code=204,
    responses=responses(404, 409),
    summary="Delete a version",
)
def delete_version(
    runtime: RuntimeDep,
    references: ReferencesDep,
    tenant: TenantDep,
    name: Name,
    version: Version,
) -> None:
    """With its files. `version_in_use` while an alias points to it or an unfinished job uses it.
    `latest` is the newest version that is left; a number is never given out twice. With its last
    version the model is gone. Clusterings that the version made stay."""
    with runtime.db.write() as session:
        folders = deletion.delete_version(session, tenant, name, version)
    references.forget(tenant, name)
    delete_unless_retained(runtime.db, runtime.storage, folders)
