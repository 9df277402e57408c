"""Queries for lists of clusterings, clusters, assignments and operations."""

from sqlalchemy import Select, select
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
    """The clustering of the dataset with this id, or its newest one."""
    if clustering_id is not None:
        found = get_clustering(session, tenant, clustering_id)
        if found.dataset_id != dataset.id:
            raise NotFound(f"The dataset {dataset.id} has no clustering {clustering_id}.")
        return found
    query = select_clusterings(tenant, dataset.id).order_by(Clustering.id.desc()).limit(1)
    newest = session.scalar(query)
    if newest is None:
        raise NotFound(
            f"The dataset {dataset.id} has no labels yet: start a job of kind cluster or predict."
        )
    return newest


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


def select_image_labels(tenant: str, image_id: str) -> Select[Assignment, Clustering, str | None]:
    """One row for each clustering of the image, with the name of its cluster."""
    return (
        select(Assignment, Clustering, Cluster.label)
        .join(Clustering, Clustering.id == Assignment.clustering_id)
        .outerjoin(
            Cluster,
            (Cluster.clustering_id == Assignment.clustering_id)
            & (Cluster.cluster_id == Assignment.cluster_id),
        )
        .where(Assignment.image_id == image_id, Clustering.tenant == tenant)
    )


def select_operations(clustering: Clustering) -> Select[ClusteringOperation]:
    return select(ClusteringOperation).where(ClusteringOperation.clustering_id == clustering.id)
