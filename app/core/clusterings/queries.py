"""Queries for lists of clusterings, clusters, assignments and operations."""

from sqlalchemy import Select, false, func, select
from sqlalchemy.orm import Session

from app.core.clusterings.rows import get_clustering
from app.core.platform.errors import NotFound
from app.core.platform.tables import (
    EXCLUDED,
    Assignment,
    Cluster,
    Clustering,
    ClusteringOperation,
    Dataset,
    Image,
)


def select_clusterings(tenant: str, dataset_id: str | None) -> Select[Clustering]:
    query = select(Clustering).where(Clustering.tenant == tenant)
    return query.where(Clustering.dataset_id == dataset_id) if dataset_id else query


def find_clustering(
    session: Session, tenant: str, dataset: Dataset, clustering_id: str | None
) -> Clustering:
    """The clustering of the dataset with this id, or its current one."""
    if clustering_id is not None:
        found = get_clustering(session, tenant, clustering_id)
        if found.dataset_id != dataset.id:
            raise NotFound(f"The dataset {dataset.id} has no clustering {clustering_id}.")
        return found
    if dataset.current_clustering_id is not None:
        return get_clustering(session, tenant, dataset.current_clustering_id)
    if session.scalar(select_clusterings(tenant, dataset.id).limit(1)) is None:
        raise NotFound(
            f"The dataset {dataset.id} has no labels yet: start a job of kind cluster or predict."
        )
    raise NotFound(
        f"The dataset {dataset.id} has no current clustering, since it was deleted: choose one by "
        f"PUT /v1/datasets/{dataset.id}/current-clustering, or name one in clustering_id."
    )


def select_clusters(clustering: Clustering) -> Select[Cluster]:
    """Without the clusters that were merged into others."""
    return select(Cluster).where(Cluster.clustering_id == clustering.id, Cluster.active)


def select_cluster_images(cluster: Cluster) -> Select[Assignment, str]:
    """Assignments to the cluster, with the names of the images."""
    return (
        select(Assignment, Image.name)
        .join(Image, Image.id == Assignment.image_id)
        .where(
            Assignment.clustering_id == cluster.clustering_id,
            Assignment.cluster_id == cluster.cluster_id,
        )
    )


def select_assignments(
    *, cluster_id: int | None, excluded: bool | None
) -> Select[Assignment, str, str | None]:
    """Assignments of all clusterings, with the names of image and cluster. The caller chooses the
    clustering by a condition that fits its index."""
    # Looked up one by one: with a join the database may walk all images up to the page.
    name = select(Image.name).where(Image.id == Assignment.image_id)
    label = select(Cluster.label).where(
        Cluster.clustering_id == Assignment.clustering_id,
        Cluster.cluster_id == Assignment.cluster_id,
    )
    query = select(Assignment, name.scalar_subquery(), label.scalar_subquery())
    if excluded is not None:
        is_excluded = Assignment.cluster_id == EXCLUDED
        query = query.where(is_excluded if excluded else ~is_excluded)
    return query if cluster_id is None else query.where(Assignment.cluster_id == cluster_id)


def select_image_labels(
    tenant: str, image_id: str
) -> Select[Assignment, Clustering, str | None, bool]:
    """One row for each clustering of the image, with the name of its cluster, and whether it is
    the current clustering of the dataset."""
    is_current = func.coalesce(Dataset.current_clustering_id == Clustering.id, false())
    return (
        select(Assignment, Clustering, Cluster.label, is_current)
        .join(Clustering, Clustering.id == Assignment.clustering_id)
        .join(Dataset, Dataset.id == Clustering.dataset_id)
        .outerjoin(
            Cluster,
            (Cluster.clustering_id == Assignment.clustering_id)
            & (Cluster.cluster_id == Assignment.cluster_id),
        )
        .where(Assignment.image_id == image_id, Clustering.tenant == tenant)
    )


def select_operations(clustering: Clustering) -> Select[ClusteringOperation]:
    return select(ClusteringOperation).where(ClusteringOperation.clustering_id == clustering.id)
