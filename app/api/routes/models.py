"""The model registry: models, their versions, and comparisons of versions."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ResolverDep, RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.core.models import deletion, registry
from app.core.models.comparison import compare
from app.core.models.queries import select_models, select_versions
from app.core.platform.tables import Model, ModelVersion
from app.core.storage.deletion.retention import delete_unless_retained

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/models",
    tags=["models"],
    responses=responses(401, 422, 503),
)

Name = Annotated[str, Path(max_length=100, description="The model's name.")]
Version = Annotated[int, Path(ge=1, le=2**31 - 1)]


def load_model(session: SessionDep, tenant: TenantDep, name: Name) -> Model:
    return registry.get_model(session, tenant, name)


ModelDep = Annotated[Model, Depends(load_model)]
Side = Annotated[int, Query(ge=1, le=2**31 - 1, description="A version.")]


# Before `/{name}`, which would match it, too.
@router.get(
    "/{name}:compare", responses=responses(404, 409), summary="Compare two versions of a model"
)
def compare_versions(
    session: SessionDep,
    model: ModelDep,
    left: Side,
    right: Side,
    dataset_id: Annotated[
        str | None,
        Query(
            max_length=40, description="Required if both versions have clustered several datasets."
        ),
    ] = None,
) -> schemas.Comparison:
    """Compares configuration, metrics, and the newest clusterings of a dataset as the models made
    them, without later edits. `not_predicted` if a version has no clustering of the dataset; the
    detail names the job that creates one."""
    ours, theirs = (registry.get_version(session, model, number) for number in (left, right))
    return schemas.Comparison.model_validate(compare(session, model, ours, theirs, dataset_id))


@router.get("", response_model=schemas.Page[schemas.Model], summary="List models by name")
def list_models(listing: ListingDep, session: SessionDep, tenant: TenantDep) -> dict[str, Any]:
    """Models of your tenant, each with its newest version and its aliases."""
    return listing.page(
        select_models(tenant),
        Model.name,
        lambda model: schemas.Model.of(model, registry.aliases(session, model)),
    )


@router.get("/{name}", responses=responses(404), summary="Read a model")
def read_model(session: SessionDep, model: ModelDep) -> schemas.Model:
    """Its newest version and its aliases."""
    return schemas.Model.of(model, registry.aliases(session, model))


@router.delete("/{name}", status_code=204, responses=responses(404, 409), summary="Delete a model")
def delete_model(runtime: RuntimeDep, resolver: ResolverDep, tenant: TenantDep, name: Name) -> None:
    """Deletes all its versions with their files. `version_in_use` if an alias points to a version
    or an unfinished job uses one; then nothing is deleted. Clusterings stay. A later model of the
    same name continues the version numbers."""
    with runtime.db.write() as session:
        folders = deletion.delete_model(session, tenant, name)
    resolver.invalidate(tenant, name)
    delete_unless_retained(runtime.db, runtime.storage, folders)


@router.get(
    "/{name}/versions",
    response_model=schemas.Page[schemas.ModelVersion],
    responses=responses(404, 422),
    summary="List the versions of a model, newest first",
)
def list_versions(listing: ListingDep, model: ModelDep) -> dict[str, Any]:
    """Each with its configuration, metrics and files."""
    show = partial(schemas.ModelVersion.of, model.name)
    return listing.page(select_versions(model), ModelVersion.version, show, descending=True)


@router.get(
    "/{name}/versions/{version}",
    responses=responses(404),
    summary="Read a version",
)
def read_version(session: SessionDep, model: ModelDep, version: Version) -> schemas.ModelVersion:
    """Configuration, metrics, files and the job that trained it."""
    return schemas.ModelVersion.of(model.name, registry.get_version(session, model, version))


@router.delete(
    "/{name}/versions/{version}",
    status_code=204,
    responses=responses(404, 409),
    summary="Delete a version",
)
def delete_version(
    runtime: RuntimeDep,
    resolver: ResolverDep,
    tenant: TenantDep,
    name: Name,
    version: Version,
) -> None:
    """Deletes its files, too. `version_in_use` if an alias points to it or an unfinished job uses
    it. `latest` becomes the newest remaining version; a number is never used twice. A model without
    versions does not exist. Clusterings stay."""
    with runtime.db.write() as session:
        folders = deletion.delete_version(session, tenant, name, version)
    resolver.invalidate(tenant, name)
    delete_unless_retained(runtime.db, runtime.storage, folders)
