"""Clusterings: the groups that were found, and who is in them."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy import select

from app.api import schemas
from app.api.deps import ListingDep, SessionDep, TenantDep
from app.api.errors import responses
from app.core import clusterings
from app.core.tables import Assignment, Cluster, Clustering, Image

router = APIRouter(
    prefix="/v1/clusterings", tags=["clusterings"], responses=responses(401, 422, 503)
)


def load_clustering(
    session: SessionDep, tenant: TenantDep, clustering_id: Annotated[str, Path(max_length=40)]
) -> Clustering:
    return clusterings.get_clustering(session, tenant, clustering_id)


ClusteringDep = Annotated[Clustering, Depends(load_clustering)]


@router.get(
    "", response_model=schemas.Page[schemas.Clustering], summary="List clusterings, newest first"
)
def list_clusterings(
    listing: ListingDep,
    tenant: TenantDep,
    dataset_id: Annotated[str | None, Query(max_length=40)] = None,
) -> dict[str, Any]:
    query = select(Clustering).where(Clustering.tenant == tenant)
    if dataset_id:
        query = query.where(Clustering.dataset_id == dataset_id)
    return listing.page(query, Clustering.id, schemas.Clustering.of, descending=True)


@router.get("/{clustering_id}", responses=responses(404), summary="Look at a clustering")
def read_clustering(clustering: ClusteringDep) -> schemas.Clustering:
    return schemas.Clustering.of(clustering)


@router.get(
    "/{clustering_id}/clusters",
    response_model=schemas.Page[schemas.Cluster],
    responses=responses(404, 422),
    summary="List the clusters with their surest images",
)
def list_clusters(
    listing: ListingDep, session: SessionDep, clustering: ClusteringDep
) -> dict[str, Any]:
    query = select(Cluster).where(Cluster.clustering_id == clustering.id, Cluster.active)

    def show(cluster: Cluster) -> schemas.Cluster:
        examples = clusterings.surest_images(session, clustering.id, cluster.cluster_id)
        return schemas.Cluster.of(cluster, examples)

    return listing.page(query, Cluster.cluster_id, show)


@router.get(
    "/{clustering_id}/assignments",
    response_model=schemas.Page[schemas.Assignment],
    responses=responses(404, 422),
    summary="List which image is in which cluster",
)
def list_assignments(
    listing: ListingDep,
    clustering: ClusteringDep,
    cluster_id: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
) -> dict[str, Any]:
    """In the order of the upload; `cluster_id` keeps one cluster's."""
    query = (
        select(Assignment, Image.name, Cluster.label)
        .join(Image, Image.id == Assignment.image_id)
        .join(
            Cluster,
            (Cluster.clustering_id == Assignment.clustering_id)
            & (Cluster.cluster_id == Assignment.cluster_id),
        )
        .where(Assignment.clustering_id == clustering.id)
    )
    if cluster_id is not None:
        query = query.where(Assignment.cluster_id == cluster_id)
    return listing.page(query, Assignment.image_id, schemas.Assignment.of)
