"""Which models are in memory, and how they compute."""

from fastapi import APIRouter

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import ServingDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.core.models.queries import versions_in_folders

router = APIRouter(
    route_class=GuardedRoute, prefix="/v1/serving", tags=["models"], responses=responses(422)
)


@router.get("", summary="Models that are loaded")
def list_loaded(session: SessionDep, tenant: TenantDep, serving: ServingDep) -> schemas.Serving:
    """Of the process that answers."""
    loaded = {message.model.folder: message for message in serving.loaded()}
    rows = versions_in_folders(session, tenant, loaded)
    return schemas.Serving(
        data=[
            schemas.LoadedModel(
                model=schemas.ModelRef(name=name, version=version),
                backend=loaded[folder].backend,
                precision=loaded[folder].model.precision,
            )
            for name, version, folder in rows
        ]
    )
