"""Deletes a clustering, and updates what refers to it in the same transaction."""

from sqlalchemy import and_, delete, or_, select
from sqlalchemy.orm import Session

from app.core.clusterings.current import forget_deleted
from app.core.clusterings.rows import get_clustering
from app.core.datasets.rows import get_dataset
from app.core.platform.errors import ClusteringInUse
from app.core.platform.tables import OPEN, Clustering, Export, Job


def delete_clustering(
    session: Session, tenant: str, clustering_id: str, *, changed_by: str | None = None
) -> list[str]:
    """Returns the storage keys of its exports, to delete after the commit."""
    clustering = get_clustering(session, tenant, clustering_id)
    dataset = get_dataset(session, tenant, clustering.dataset_id, lock=True)  # no export starts
    user = session.scalar(
        select(Job.id)
        .where(
            Job.dataset_id == clustering.dataset_id,
            Job.status.in_(OPEN),
            or_(
                and_(
                    Job.kind == "export",
                    Job.config["clustering_id"].as_string() == clustering_id,
                ),
                and_(
                    Job.kind == "cluster",
                    Job.config["learn_from"]["clustering_id"].as_string() == clustering_id,
                ),
            ),
        )
        .limit(1)
    )
    if user is not None:
        raise ClusteringInUse(f"The job {user} uses this clustering; wait for it or cancel it.")
    keys = session.scalars(select(Export.storage_key).where(Export.clustering_id == clustering_id))
    files = list(keys)
    session.execute(delete(Clustering).where(Clustering.id == clustering_id))
    forget_deleted(session, dataset, clustering_id, changed_by=changed_by)
    return files
