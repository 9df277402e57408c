"""Two versions of a model side by side."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import SessionDep
from app.api.http.errors import responses
from app.api.routes.models import ModelDep
from app.core import models as registry
from app.core.models.comparison import compare

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/models",
    tags=["models"],
    responses=responses(401, 422, 503),
)
Side = Annotated[int, Query(ge=1, le=2**31 - 1, description="A version.")]


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
        Query(max_length=40, description="Needed if both have clustered several datasets."),
    ] = None,
) -> schemas.Comparison:
    """How they were made, their metrics, and how their newest clusterings of a dataset differ, as
    the models made them: what people have moved since does not count. `not_predicted` if a version
    has no clustering of the dataset yet; the detail says which job makes one."""
    ours, theirs = (registry.get_version(session, model, number) for number in (left, right))
    return schemas.Comparison.model_validate(compare(session, model, ours, theirs, dataset_id))
