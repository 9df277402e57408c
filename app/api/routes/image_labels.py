"""What the clusterings call an image."""

from typing import Any

from fastapi import APIRouter
from sqlalchemy import select

from app.api import schemas
from app.api.http.access import GuardedRoute
from app.api.http.dependencies import ListingDep, TenantDep
from app.api.http.errors import responses
from app.api.routes.images import ImageDep
from app.core.platform.tables import Assignment, Cluster, Clustering

router = APIRouter(
    route_class=GuardedRoute,
    prefix="/v1/images",
    tags=["images"],
    responses=responses(401, 404, 422, 503),
)


@router.get(
    "/{image_id}/labels",
    response_model=schemas.Page[schemas.ImageLabel],
    summary="List an image's labels, of the newest clustering first",
)
def list_labels(listing: ListingDep, tenant: TenantDep, image: ImageDep) -> dict[str, Any]:
    """As they are now, edits included, one for each clustering that the image is in."""
    query = (
        select(Assignment, Clustering, Cluster.label)
        .join(Clustering, Clustering.id == Assignment.clustering_id)
        .outerjoin(
            Cluster,
            (Cluster.clustering_id == Assignment.clustering_id)
            & (Cluster.cluster_id == Assignment.cluster_id),
        )
        .where(Assignment.image_id == image.id, Clustering.tenant == tenant)
    )
    key = Assignment.clustering_id
    return listing.page(query, key, schemas.ImageLabel.of, descending=True)
