"""The models that are loaded for prediction."""

from fastapi import APIRouter

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ServingDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.core.models.queries import versions_in_folders

router = APIRouter(
    route_class=AuthenticatedRoute, prefix="/v1/serving", tags=["models"], responses=responses(422)
)


@router.get("", summary="Read the loaded models")
def list_loaded_models(
    session: SessionDep, tenant: TenantDep, serving: ServingDep
) -> schemas.Serving:
    """Models in the memory of the API process that answers."""
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
