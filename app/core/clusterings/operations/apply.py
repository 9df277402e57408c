"""One operation, one transaction, one revision."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations.edit import Edit, chunked
from app.core.clusterings.operations.kinds import Operation, Undo
from app.core.clusterings.rows import get_clustering
from app.core.platform.errors import NothingToUndo, RevisionStale
from app.core.platform.tables import Cluster, Clustering, ClusteringOperation, Dataset


def perform(
    session: Session,
    tenant: str,
    clustering_id: str,
    operation: Operation,
    *,
    revisions: Collection[int] | None = None,
) -> ClusteringOperation:
    """Change the clustering if it is still at one of these revisions, whichever if None."""
    clustering = _lock(session, get_clustering(session, tenant, clustering_id))
    check_revision(clustering, revisions)
    edit = Edit(session, clustering)
    if isinstance(operation, Undo):
        return _undo(edit)
    arguments = operation.apply(edit)
    return edit.finish(type(operation).__name__.lower(), arguments)


def check_revision(clustering: Clustering, revisions: Collection[int] | None) -> None:
    if revisions is not None and clustering.revision not in revisions:
        raise RevisionStale(
            f"The clustering is at revision {clustering.revision} now; look at it again."
        )


def _lock(session: Session, clustering: Clustering) -> Clustering:
    """Nobody edits it, and no image of its dataset goes away, before this transaction ends."""
    session.execute(
        select(Dataset.id).where(Dataset.id == clustering.dataset_id).with_for_update(read=True)
    )
    session.refresh(clustering, with_for_update=True)
    return clustering


def _undo(edit: Edit) -> ClusteringOperation:
    own = ClusteringOperation.clustering_id == edit.clustering.id
    undone = edit.session.scalar(
        select(ClusteringOperation)
        .where(own, ClusteringOperation.kind != "undo", ClusteringOperation.undone_by.is_(None))
        .order_by(ClusteringOperation.revision.desc())
        .limit(1)
    )
    if undone is None:
        raise NothingToUndo("Every operation on this clustering is already undone.")
    for chunk in chunked([int(number) for number in undone.clusters_before]):
        rows = edit.session.scalars(
            select(Cluster).where(
                Cluster.clustering_id == edit.clustering.id, Cluster.cluster_id.in_(chunk)
            )
        )
        for cluster in rows.all():
            # one that the operation made keeps its name, for those who look at older revisions
            edit.change(cluster, **undone.clusters_before[str(cluster.cluster_id)])
    edit.restore(undone.revision)
    undone.undone_by = edit.revision
    return edit.finish("undo", {}, undoes=undone.revision)
