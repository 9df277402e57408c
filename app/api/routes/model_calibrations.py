"""How far a version can be trusted: calibrations, drift, and their plots."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import (
    ActorDep,
    IfNoneMatchHeader,
    ResolverDep,
    RuntimeDep,
    SessionDep,
    TenantDep,
)
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep
from app.api.http.pictures import PLOT_RESPONSES, PlotFormat, image_response, not_modified
from app.api.routes.models import ModelDep, Name, Version
from app.core.clusterings.plots import render
from app.core.models import calibrations, drift, registry
from app.core.models.plots import load_plot
from app.core.platform.tables import ModelCalibration, ModelVersion

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/models/{name}/versions/{version}",
    tags=["models"],
    responses=responses(401, 404, 422, 503),
)


def load_version(session: SessionDep, model: ModelDep, version: Version) -> ModelVersion:
    return registry.get_version(session, model, version)


VersionDep = Annotated[ModelVersion, Depends(load_version)]


@router.get("/calibration", summary="Read how reliable the probabilities of a version are")
def read_calibration(
    session: SessionDep, model: ModelDep, version: VersionDep
) -> schemas.CurrentCalibration:
    """The map from the model's own probability to the calibrated one that predictions use now, and
    how often labels were right in the reviews of the version's clusterings."""
    current = calibrations.current_calibration(session, version)
    return schemas.CurrentCalibration.of(
        current,
        calibrations.newest_calibration(session, version),
        calibrations.reliability(session, model, version, current),
    )


@router.post(
    "/calibrations",
    status_code=201,
    responses=responses(409),
    summary="Calibrate a version by its reviews",
)
def add_calibration(
    runtime: RuntimeDep, resolver: ResolverDep, actor: ActorDep, name: Name, version: Version
) -> schemas.Calibration:
    """Fits the probabilities to what people said in reviews of the version's clusterings.
    Predictions use it from the next request on; labels and stored clusterings do not change.
    `too_few_reviews` if there are not enough."""
    with runtime.db.write() as session:
        model = registry.get_model(session, actor.tenant, name, lock=True)
        row = calibrations.add_calibration(
            session, model, registry.get_version(session, model, version), actor.key_name
        )
        shown = schemas.Calibration.of(row)
    resolver.invalidate(actor.tenant, name)
    return shown


@router.get(
    "/calibrations",
    response_model=schemas.Page[schemas.Calibration],
    summary="List the calibrations of a version, newest first",
)
def list_calibrations(listing: ListingDep, version: VersionDep) -> dict[str, Any]:
    """Those that were fitted to reviews; that of the training is in the manifest."""
    query = calibrations.select_calibrations(version)
    show = schemas.Calibration.of
    return listing.page(query, ModelCalibration.number, show, descending=True)


@router.get("/drift", summary="Read whether new images are like those of the training")
def read_drift(
    session: SessionDep,
    version: VersionDep,
    days: Annotated[int, Query(ge=1, le=366, description="Days to look back.")] = 30,
) -> schemas.Drift:
    """What `:predict` and the inference protocol labeled with the version: counts of each day, and
    how much the images differ from those of the training. Counts are written every few seconds."""
    return schemas.Drift.of(drift.read_drift(session, version, days))


@router.get(
    "/plots/{plot}",
    response_class=Response,
    responses=PLOT_RESPONSES,
    summary="Draw a plot of a version",
)
def read_version_plot(
    runtime: RuntimeDep,
    tenant: TenantDep,
    name: Name,
    version: Version,
    plot: Annotated[
        Literal["reliability", "drift"],
        Path(
            description="`reliability`: how often labels of a probability were right in reviews; "
            "`drift`: novelty of the images of the last 30 days."
        ),
    ],
    image_format: PlotFormat = "png",
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """A PNG or SVG of the current state."""
    with runtime.db.read() as session:
        model = registry.get_model(session, tenant, name)
        row = registry.get_version(session, model, version)
        drawing, state = load_plot(session, model, row, plot)
        tag = f"{state}-{plot}-{image_format}"
        if (response := not_modified(tag, if_none_match)) is not None:
            return response
    return image_response(render(drawing, image_format), image_format, tag)
