"""Clusterings, their clusters and the assignments of images."""

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import ActorDep, RuntimeDep, SessionDep, TenantDep
from app.api.http.errors import responses
from app.api.http.pagination import ListingDep, RankedListingDep
from app.core.clusterings import deletion, queries
from app.core.clusterings import rows as clusterings
from app.core.clusterings import statistics as cluster_statistics
from app.core.platform.tables import Assignment, Cluster, Clustering
from app.core.storage.deletion.retention import delete_unless_retained

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings",
    tags=["clusterings"],
    responses=responses(401, 422, 503),
)
Revision = {"description": "Found", "headers": {"ETag": {"schema": {"type": "string"}}}}


def load_clustering(
    session: SessionDep, tenant: TenantDep, clustering_id: Annotated[str, Path(max_length=40)]
) -> Clustering:
    return clusterings.get_clustering(session, tenant, clustering_id)


ClusteringDep = Annotated[Clustering, Depends(load_clustering)]


def load_cluster(
    session: SessionDep, clustering: ClusteringDep, cluster_id: Annotated[int, Path(ge=0, lt=2**31)]
) -> Cluster:
    return clusterings.get_cluster(session, clustering, cluster_id)


ClusterDep = Annotated[Cluster, Depends(load_cluster)]


@router.get(
    "", response_model=schemas.Page[schemas.Clustering], summary="List clusterings, newest first"
)
def list_clusterings(
    listing: ListingDep,
    tenant: TenantDep,
    dataset_id: Annotated[str | None, Query(max_length=40)] = None,
) -> dict[str, Any]:
    """Each cluster job and each prediction of a dataset creates one."""
    query = queries.select_clusterings(tenant, dataset_id)
    return listing.page(query, Clustering.id, schemas.Clustering.of, descending=True)


@router.get(
    "/{clustering_id}",
    responses={200: Revision, **responses(404)},
    summary="Read a clustering",
)
def read_clustering(response: Response, clustering: ClusteringDep) -> schemas.Clustering:
    """The `ETag` is the revision, which an operation sends in `If-Match`."""
    response.headers["ETag"] = f'"{clustering.revision}"'
    return schemas.Clustering.of(clustering)


@router.delete(
    "/{clustering_id}",
    status_code=204,
    responses=responses(404, 409),
    summary="Delete a clustering",
)
def delete_clustering(
    runtime: RuntimeDep, actor: ActorDep, clustering_id: Annotated[str, Path(max_length=40)]
) -> None:
    """Deletes its history and its exports, too. The dataset and the model stay. If it was the
    current clustering of the dataset, the one that was current before becomes current again."""
    with runtime.db.write() as session:
        files = deletion.delete_clustering(
            session, actor.tenant, clustering_id, changed_by=actor.key_name
        )
    delete_unless_retained(runtime.db, runtime.storage, files)


@router.get(
    "/{clustering_id}/statistics",
    responses=responses(404),
    summary="Read the statistics of a clustering",
)
def read_statistics(session: SessionDep, clustering: ClusteringDep) -> schemas.Statistics:
    """Probabilities and cluster sizes of the current revision; no labels are needed."""
    return schemas.Statistics.of(cluster_statistics.statistics(session, clustering))


@router.get(
    "/{clustering_id}/clusters",
    response_model=schemas.Page[schemas.Cluster],
    responses=responses(404, 422),
    summary="List clusters with examples",
)
def list_clusters(
    listing: ListingDep, session: SessionDep, clustering: ClusteringDep
) -> dict[str, Any]:
    """Name, size and mean probability of each, with its most typical images."""

    def show(cluster: Cluster) -> schemas.Cluster:
        examples = clusterings.ranked_images(session, clustering.id, cluster.cluster_id)
        return schemas.Cluster.of(cluster, examples)

    return listing.page(queries.select_clusters(clustering), Cluster.cluster_id, show)


@router.get(
    "/{clustering_id}/clusters/{cluster_id}",
    responses=responses(404),
    summary="Read a cluster",
)
def read_cluster(session: SessionDep, cluster: ClusterDep) -> schemas.Cluster:
    """As in the list of clusters."""
    examples = clusterings.ranked_images(session, cluster.clustering_id, cluster.cluster_id)
    return schemas.Cluster.of(cluster, examples)


@router.get(
    "/{clustering_id}/clusters/{cluster_id}/images",
    response_model=schemas.Page[schemas.RankedImage],
    responses=responses(404, 422),
    summary="List the images of a cluster",
)
def list_cluster_images(
    listing: RankedListingDep,
    cluster: ClusterDep,
    sort: Annotated[
        Literal["representative", "borderline", "outlier"],
        Query(
            description="`representative`: highest probability first; `borderline`: closest to "
            "another cluster first; `outlier`: farthest from the cluster's center first."
        ),
    ] = "representative",
) -> dict[str, Any]:
    """Each with its probability, margin and distance."""
    query = queries.select_cluster_images(cluster)
    ranking = clusterings.RANKINGS[sort]
    return listing.ranked_page(query, ranking, Assignment.image_id, schemas.RankedImage.of)


@router.get(
    "/{clustering_id}/assignments",
    response_model=schemas.Page[schemas.Assignment],
    responses=responses(404, 422),
    summary="List assignments of images to clusters",
)
def list_assignments(
    listing: ListingDep,
    clustering: ClusteringDep,
    cluster_id: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
    excluded: Annotated[
        bool | None, Query(description="Only excluded images, or only the others.")
    ] = None,
) -> dict[str, Any]:
    """In the order of the upload."""
    query = queries.select_assignments(cluster_id=cluster_id, excluded=excluded)
    key, convert = Assignment.image_id, schemas.Assignment.of
    if cluster_id is None and not excluded:
        return listing.page_within(query, Assignment.clustering_id, clustering.id, key, convert)
    return listing.page(query.where(Assignment.clustering_id == clustering.id), key, convert)
