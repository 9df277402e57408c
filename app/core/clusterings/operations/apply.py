"""Applies an operation: one transaction, one revision."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations.editor import ClusteringEditor, chunked
from app.core.clusterings.operations.kinds import Operation, Undo
from app.core.clusterings.rows import get_clustering
from app.core.platform.errors import NothingToUndo, RevisionStale
from app.core.platform.tables import Cluster, Clustering, ClusteringOperation, Dataset


def apply_operation(
    session: Session,
    tenant: str,
    clustering_id: str,
    operation: Operation,
    *,
    revisions: Collection[int] | None = None,
) -> ClusteringOperation:
    """Changes the clustering if it is at one of these revisions; None allows any."""
    clustering = _lock(session, get_clustering(session, tenant, clustering_id))
    check_revision(clustering, revisions)
    editor = ClusteringEditor(session, clustering)
    if isinstance(operation, Undo):
        return _undo(editor)
    arguments = operation.apply(editor)
    return editor.finish(type(operation).__name__.lower(), arguments)


def check_revision(clustering: Clustering, revisions: Collection[int] | None) -> None:
    if revisions is not None and clustering.revision not in revisions:
        raise RevisionStale(
            f"The clustering is at revision {clustering.revision} now; read it again and retry."
        )


def _lock(session: Session, clustering: Clustering) -> Clustering:
    """Locks the clustering, and the dataset against deletions of images."""
    session.execute(
        select(Dataset.id).where(Dataset.id == clustering.dataset_id).with_for_update(read=True)
    )
    session.refresh(clustering, with_for_update=True)
    return clustering


def _undo(editor: ClusteringEditor) -> ClusteringOperation:
    own = ClusteringOperation.clustering_id == editor.clustering.id
    undone = editor.session.scalar(
        select(ClusteringOperation)
        .where(own, ClusteringOperation.kind != "undo", ClusteringOperation.undone_by.is_(None))
        .order_by(ClusteringOperation.revision.desc())
        .limit(1)
    )
    if undone is None:
        raise NothingToUndo("Every operation on this clustering is already undone.")
    for chunk in chunked([int(number) for number in undone.clusters_before]):
        rows = editor.session.scalars(
            select(Cluster).where(
                Cluster.clustering_id == editor.clustering.id, Cluster.cluster_id.in_(chunk)
            )
        )
        for cluster in rows.all():
            # a cluster that the operation created keeps its name, for views of older revisions
            editor.change(cluster, **undone.clusters_before[str(cluster.cluster_id)])
    editor.restore(undone.revision)
    undone.undone_by = editor.revision
    return editor.finish("undo", {}, undoes=undone.revision)
