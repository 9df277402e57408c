"""Pictures of a clustering: contact sheets of its clusters, and plots."""

from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query, Response

from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import IfNoneMatchHeader, RuntimeDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pictures import (
    NOT_MODIFIED,
    PLOT_RESPONSES,
    PlotFormat,
    image_response,
    not_modified,
)
from app.core.clusterings import plots as cluster_plots
from app.core.clusterings import rows as clusterings
from app.core.clusterings.contact_sheets import draw_sheet, load_sheet
from app.core.datasets.thumbnails import get_thumbnail

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings",
    tags=["clusterings"],
    responses=responses(401, 404, 422, 503),
)
ClusteringId = Annotated[str, Path(max_length=40)]


@router.get(
    "/{clustering_id}/clusters/{cluster_id}/contact-sheet",
    response_class=Response,
    responses={200: {"content": {"image/png": {}}}, **NOT_MODIFIED},
    summary="Draw a contact sheet of a cluster",
)
def read_contact_sheet(
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    cluster_id: Annotated[int, Path(ge=0, lt=2**31)],
    rows: Annotated[int, Query(ge=1, le=10, description="Rows of typical images.")] = 3,
    columns: Annotated[int, Query(ge=1, le=12)] = 6,
    borderline_rows: Annotated[
        int, Query(ge=0, le=5, description="Rows of borderline images.")
    ] = 1,
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """A PNG with the cluster's name, size and mean probability, its most typical images, and the
    images that are closest to another cluster."""
    with runtime.db.read() as session:
        clustering = clusterings.get_clustering(session, tenant, clustering_id)
        cluster = clusterings.get_cluster(session, clustering, cluster_id)
        # deleting an image changes the size but not the revision
        tag = f"{clustering.revision}-{cluster.size}-{rows}x{columns}-{borderline_rows}"
        if (response := not_modified(tag, if_none_match)) is not None:
            return response
        sheet = load_sheet(
            session, cluster, rows=rows, columns=columns, borderline_rows=borderline_rows
        )
    read = partial(get_thumbnail, runtime.storage, runtime.decoders, tenant)
    return image_response(draw_sheet(sheet, read), "png", tag)


@router.get(
    "/{clustering_id}/plots/{name}",
    response_class=Response,
    responses=PLOT_RESPONSES,
    summary="Draw a plot of a clustering",
)
def read_plot(
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    name: Annotated[
        Literal["sizes", "probabilities", "confusion", "curves"],
        Path(
            description="`sizes` of the clusters; maximum softmax `probabilities`; `confusion` of "
            "clusters and true labels, if the images have any; training `curves`, while the job "
            "exists."
        ),
    ],
    image_format: PlotFormat = "png",
    if_none_match: IfNoneMatchHeader = None,
) -> Response:
    """A PNG or SVG of the current revision."""
    with runtime.db.read() as session:
        clustering = clusterings.get_clustering(session, tenant, clustering_id)
        tag = f"{clustering.revision}-{clustering.image_count}-{name}-{image_format}"
        if (response := not_modified(tag, if_none_match)) is not None:
            return response
        drawing = cluster_plots.load_plot(session, clustering, name)
    return image_response(cluster_plots.render(drawing, image_format), image_format, tag)
