"""Queries for lists of clusterings, clusters, assignments and operations."""

from sqlalchemy import ColumnElement, Row, Select, false, func, select
from sqlalchemy.orm import Session, aliased

from app.core.clusterings.operations import next_redo, next_undo
from app.core.clusterings.rows import clustering_not_found, get_clustering
from app.core.platform.errors import InvalidRequest, NotFound
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


def with_history(query: Select[Clustering]) -> Select[Clustering, int | None, int | None]:
    """With the revisions of the operations that undo and redo would affect."""
    return query.add_columns(
        next_undo(Clustering.id).scalar_subquery(), next_redo(Clustering.id).scalar_subquery()
    )


def read_with_history(
    session: Session, tenant: str, clustering_id: str
) -> Row[Clustering, int | None, int | None]:
    query = select_clusterings(tenant, None).where(Clustering.id == clustering_id)
    found = session.execute(with_history(query)).one_or_none()
    if found is None:
        raise clustering_not_found(clustering_id)
    return found


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
        f"The dataset {dataset.id} has clusterings, but none is the current one: choose one by "
        f"PUT /v1/datasets/{dataset.id}/current-clustering, or name one in clustering_id."
    )


def select_clusters(clustering: Clustering) -> Select[Cluster]:
    """Without the clusters that were merged into others."""
    return select(Cluster).where(Cluster.clustering_id == clustering.id, Cluster.active)


def select_members(cluster: Cluster) -> Select[Assignment]:
    """Assignments to the cluster."""
    return select(Assignment).where(
        Assignment.clustering_id == cluster.clustering_id,
        Assignment.cluster_id == cluster.cluster_id,
    )


def select_cluster_images(cluster: Cluster) -> Select[Assignment, str]:
    """Assignments to the cluster, with the names of the images."""
    query = select_members(cluster).add_columns(Image.name)
    return query.join(Image, Image.id == Assignment.image_id)


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


def get_other(
    session: Session, tenant: str, clustering: Clustering, other_id: str | None
) -> Clustering | None:
    """Another clustering of the same dataset, to compare with."""
    if other_id is None:
        return None
    other = get_clustering(session, tenant, other_id)
    if other.dataset_id != clustering.dataset_id:
        raise InvalidRequest.field("other", f"{other_id} is a clustering of another dataset")
    return other


def in_other_cluster(other: Clustering, cluster_id: int) -> ColumnElement[bool]:
    """Whether the image of an assignment is also in this cluster of another clustering."""
    there = aliased(Assignment)
    return (
        select(there.image_id)
        .where(
            there.clustering_id == other.id,
            there.cluster_id == cluster_id,
            there.image_id == Assignment.image_id,
        )
        .exists()
    )


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
