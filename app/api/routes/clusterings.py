"""Clusterings, their clusters and the assignments of images."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Path, Query, Response
from sqlalchemy.orm import Session

from app.api import schemas
from app.api.http.auth import AuthenticatedRoute
from app.api.http.dependencies import (
    ActorDep,
    IfNoneMatchHeader,
    RuntimeDep,
    SessionDep,
    TenantDep,
)
from app.api.http.errors import responses
from app.api.http.negotiation import matches_etag
from app.api.http.pagination import ListingDep, PageCursorsDep, RankedListingDep
from app.core.clusterings import deletion, queries, splitting
from app.core.clusterings import rows as clusterings
from app.core.clusterings import statistics as cluster_statistics
from app.core.clusterings.hierarchy import MAX_CLUSTERS, group_clusters
from app.core.clusterings.similarity import (
    SimilarImages,
    images_by_similarity,
    similar_clusters,
)
from app.core.platform.errors import InvalidRequest
from app.core.platform.tables import Assignment, Cluster, Clustering
from app.core.runtime import Runtime
from app.core.storage.deletion.retention import delete_unless_retained

router = APIRouter(
    route_class=AuthenticatedRoute,
    prefix="/v1/clusterings",
    tags=["clusterings"],
    responses=responses(401, 422, 503),
)
Revision = {"description": "Found", "headers": {"ETag": {"schema": {"type": "string"}}}}
ClusteringId = Annotated[str, Path(max_length=40)]
ClusterNumber = Annotated[int, Path(ge=0, lt=2**31)]


def load_clustering(
    session: SessionDep, tenant: TenantDep, clustering_id: ClusteringId
) -> Clustering:
    return clusterings.get_clustering(session, tenant, clustering_id)


ClusteringDep = Annotated[Clustering, Depends(load_clustering)]


def load_cluster(
    session: SessionDep, clustering: ClusteringDep, cluster_id: ClusterNumber
) -> Cluster:
    return clusterings.get_cluster(session, clustering, cluster_id)


ClusterDep = Annotated[Cluster, Depends(load_cluster)]
ImageSort = Annotated[
    Literal["representative", "borderline", "outlier", "similar"],
    Query(
        description="`representative`: highest probability first; `borderline`: closest to "
        "another cluster first; `outlier`: farthest from the cluster's center first; "
        "`similar`: most similar to the image `similar_to` first."
    ),
]
SimilarTo = Annotated[str | None, Query(max_length=40, description="An image of the dataset.")]
Examples = Annotated[int, Query(ge=0, le=24, description="Number of examples per cluster.")]


@router.get(
    "", response_model=schemas.Page[schemas.Clustering], summary="List clusterings, newest first"
)
def list_clusterings(
    listing: ListingDep,
    tenant: TenantDep,
    dataset_id: Annotated[str | None, Query(max_length=40)] = None,
) -> dict[str, Any]:
    """Each cluster job and each prediction of a dataset creates one."""
    query = queries.with_history(queries.select_clusterings(tenant, dataset_id))
    return listing.page(query, Clustering.id, schemas.Clustering.of, descending=True)


@router.get(
    "/{clustering_id}",
    response_model=schemas.Clustering,
    responses={200: Revision, 304: {"description": "Not modified"}, **responses(404)},
    summary="Read a clustering",
)
def read_clustering(
    response: Response,
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    if_none_match: IfNoneMatchHeader = None,
) -> schemas.Clustering | Response:
    """The `ETag` is the revision, which an operation sends in `If-Match`. With `If-None-Match` the
    response is 304 until the next operation; deleting images creates no revision."""
    # No SessionDep: polled by every open page, and each dependency is another change of threads.
    with runtime.db.read() as session:
        if if_none_match is not None:
            headers = _revision_headers(clusterings.get_revision(session, tenant, clustering_id))
            if matches_etag(if_none_match, headers["ETag"]):
                return Response(status_code=304, headers=headers)
        clustering, undo, redo = queries.read_with_history(session, tenant, clustering_id)
    response.headers.update(_revision_headers(clustering.revision))
    return schemas.Clustering.of(clustering, undo, redo)


def _revision_headers(revision: int) -> dict[str, str]:
    return {"ETag": f'"{revision}"', "Cache-Control": "private, no-cache"}


@router.delete(
    "/{clustering_id}",
    status_code=204,
    responses=responses(404, 409),
    summary="Delete a clustering",
)
def delete_clustering(runtime: RuntimeDep, actor: ActorDep, clustering_id: ClusteringId) -> None:
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
    listing: ListingDep,
    session: SessionDep,
    clustering: ClusteringDep,
    examples: Examples = clusterings.EXAMPLES,
) -> dict[str, Any]:
    """Name, size and mean probability of each, with its most typical images."""

    def show(rows: Sequence[Any]) -> list[schemas.Cluster]:
        numbers = [cluster.cluster_id for cluster, _ in rows]
        found = clusterings.examples(session, clustering.id, numbers, examples)
        return [schemas.Cluster.of(cluster, found[cluster.cluster_id]) for cluster, _ in rows]

    return listing.batch_page(queries.select_clusters(clustering), Cluster.cluster_id, show)


@router.get(
    "/{clustering_id}/clusters/{cluster_id}",
    responses=responses(404),
    summary="Read a cluster",
)
def read_cluster(
    session: SessionDep, cluster: ClusterDep, examples: Examples = clusterings.EXAMPLES
) -> schemas.Cluster:
    """As in the list of clusters."""
    number = cluster.cluster_id
    found = clusterings.examples(session, cluster.clustering_id, [number], examples)
    return schemas.Cluster.of(cluster, found[number])


@router.post(
    "/{clustering_id}/clusters/{cluster_id}:preview-split",
    responses=responses(404, 409, 422, 429),
    summary="Preview the split of a cluster",
)
def preview_split(
    body: schemas.SplitPreviewCreate,
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    cluster_id: ClusterNumber,
) -> schemas.SplitPreview:
    """The parts that the operation `split` would make with the same `parts` and `seed`. Changes
    nothing."""
    preview = splitting.preview_split(
        runtime.db,
        runtime.storage,
        tenant,
        clustering_id,
        cluster_id,
        parts=body.parts,
        seed=body.seed,
    )
    return schemas.SplitPreview.of(preview)


@router.get(
    "/{clustering_id}/clusters/{cluster_id}/images",
    response_model=schemas.Page[schemas.RankedImage],
    responses=responses(404, 409, 422, 429),
    summary="List the images of a cluster",
)
def list_cluster_images(
    listing: RankedListingDep,
    runtime: RuntimeDep,
    session: SessionDep,
    tenant: TenantDep,
    cluster: ClusterDep,
    sort: ImageSort = "representative",
    similar_to: SimilarTo = None,
) -> dict[str, Any]:
    """Each with its probability, margin and distance."""
    query = queries.select_cluster_images(cluster)
    order = _order_by_similarity(runtime, session, tenant, cluster, sort, similar_to)
    if order is not None:
        return listing.similar_page(query, order, Assignment.image_id, schemas.RankedImage.of)
    ranking = clusterings.RANKINGS[sort]
    return listing.ranked_page(query, ranking, Assignment.image_id, schemas.RankedImage.of)


@router.get(
    "/{clustering_id}/clusters/{cluster_id}/images/cursors",
    response_model=schemas.PageCursors,
    responses=responses(404, 422),
    summary="Read the cursors of all pages of a cluster's images",
)
def read_cluster_image_cursors(
    cursors: PageCursorsDep,
    runtime: RuntimeDep,
    session: SessionDep,
    tenant: TenantDep,
    cluster: ClusterDep,
    sort: ImageSort = "representative",
    similar_to: SimilarTo = None,
) -> dict[str, Any]:
    """A page of the list with the same `sort`, `every` as `limit`, and one of them as `cursor` can
    be read without those before it."""
    order = _order_by_similarity(runtime, session, tenant, cluster, sort, similar_to)
    if order is not None:
        return cursors.similar(order)
    query, ranking = queries.select_members(cluster), clusterings.RANKINGS[sort]
    return cursors.ranked(query, ranking, Assignment.image_id)


def _order_by_similarity(
    runtime: Runtime,
    session: Session,
    tenant: str,
    cluster: Cluster,
    sort: str,
    similar_to: str | None,
) -> SimilarImages | None:
    """The order that `sort=similar` asks for; None if `sort` is another."""
    if (sort == "similar") != (similar_to is not None):
        raise InvalidRequest.field("similar_to", "send it together with sort=similar")
    if similar_to is None:
        return None
    session.commit()  # returns the connection while features are read
    return images_by_similarity(runtime.db, runtime.storage, tenant, cluster, similar_to)


@router.get(
    "/{clustering_id}/clusters/{cluster_id}/similar",
    responses=responses(404, 409, 429),
    summary="Find the clusters that are most similar to a cluster",
)
def find_similar_clusters(
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: Annotated[str, Path(max_length=40)],
    cluster_id: Annotated[int, Path(ge=0, lt=2**31)],
    limit: Annotated[int, Query(ge=1, le=1000, description="Number of clusters.")] = 50,
) -> schemas.SimilarClusters:
    """Most similar first; clusters without images are left out. Fails with `features_missing` if
    the features of the clustering are no longer stored."""
    found = similar_clusters(runtime.db, runtime.storage, tenant, clustering_id, cluster_id, limit)
    return schemas.SimilarClusters.of(found)


@router.get(
    "/{clustering_id}/hierarchy",
    responses=responses(404, 409, 422, 429),
    summary="Group the clusters of a clustering",
)
def read_hierarchy(
    runtime: RuntimeDep,
    tenant: TenantDep,
    clustering_id: ClusteringId,
    n_groups: Annotated[
        int,
        Query(
            ge=1,
            le=MAX_CLUSTERS,
            description="Number of groups; at most the number of clusters with images.",
        ),
    ],
) -> schemas.Hierarchy:
    """A coarser view without a new training: the most similar clusters are joined step by step, by
    Ward's criterion on their mean features and sizes. Groups of fewer are unions of groups of more.
    Clusters without images are left out. Changes nothing. Fails with `features_missing` if the
    features of the clustering are no longer stored."""
    found = group_clusters(runtime.db, runtime.storage, tenant, clustering_id, n_groups)
    return schemas.Hierarchy.of(found)


@router.get(
    "/{clustering_id}/assignments",
    response_model=schemas.Page[schemas.Assignment],
    responses=responses(404, 422),
    summary="List assignments of images to clusters",
)
def list_assignments(
    listing: ListingDep,
    session: SessionDep,
    tenant: TenantDep,
    clustering: ClusteringDep,
    cluster_id: Annotated[int | None, Query(ge=0, lt=2**31)] = None,
    excluded: Annotated[
        bool | None, Query(description="Only excluded images, or only the others.")
    ] = None,
    other: Annotated[
        str | None,
        Query(max_length=40, description="Another clustering of the dataset, to compare with."),
    ] = None,
    other_cluster_id: Annotated[
        int | None,
        Query(ge=0, lt=2**31, description="Only images that are in this cluster of `other`."),
    ] = None,
) -> dict[str, Any]:
    """In the order of the upload."""
    if (other is None) != (other_cluster_id is None):
        raise InvalidRequest.field("other_cluster_id", "send it together with other")
    query = queries.select_assignments(cluster_id=cluster_id, excluded=excluded)
    compared = queries.get_other(session, tenant, clustering, other)
    if compared is not None and other_cluster_id is not None:
        query = query.where(queries.in_other_cluster(compared, other_cluster_id))
    key, convert = Assignment.image_id, schemas.Assignment.of
    if cluster_id is None and compared is None and not excluded:
        return listing.page_within(query, Assignment.clustering_id, clustering.id, key, convert)
    return listing.page(query.where(Assignment.clustering_id == clustering.id), key, convert)
