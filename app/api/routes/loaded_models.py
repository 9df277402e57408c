"""Which models are in memory, and how they compute."""

from fastapi import APIRouter
from sqlalchemy import select

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import ServingDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.core.platform.tables import Model, ModelVersion

router = APIRouter(
    route_class=GuardedRoute, prefix="/v1/serving", tags=["models"], responses=responses(422)
)


@router.get("", summary="Models that are loaded")
def list_loaded(session: SessionDep, tenant: TenantDep, serving: ServingDep) -> schemas.Serving:
    """Of the process that answers."""
    loaded = {message.model.folder: message for message in serving.loaded()}
    rows = session.execute(
        select(Model.name, ModelVersion.version, ModelVersion.folder)
        .join(Model, Model.id == ModelVersion.model_id)
        .where(Model.tenant == tenant, ModelVersion.folder.in_(loaded))
        .order_by(Model.name, ModelVersion.version)
    )
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
