"""Applies an operation: one transaction, one revision."""

from collections.abc import Collection

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.clusterings.operations import history
from app.core.clusterings.operations.editor import ClusteringEditor
from app.core.clusterings.operations.kinds import Operation, Redo, Undo
from app.core.clusterings.rows import get_clustering
from app.core.platform.errors import RevisionStale
from app.core.platform.tables import Cluster, Clustering, ClusteringOperation, Dataset

_MAX_CHECKED = 1_000  # changed clusters whose names are compared with the others


def apply_operation(
    session: Session,
    tenant: str,
    clustering_id: str,
    operation: Operation,
    *,
    revisions: Collection[int] | None = None,
    created_by: str | None = None,
) -> ClusteringOperation:
    """Changes the clustering if it is at one of these revisions; None allows any."""
    clustering = lock_clustering(session, get_clustering(session, tenant, clustering_id))
    check_revision(clustering, revisions)
    editor = ClusteringEditor(session, clustering)
    if isinstance(operation, Undo):
        return history.undo(editor, created_by)
    if isinstance(operation, Redo):
        return history.redo(editor, created_by)
    arguments = operation.apply(editor)
    return editor.finish(type(operation).__name__.lower(), arguments, created_by=created_by)


def check_revision(clustering: Clustering, revisions: Collection[int] | None) -> None:
    if revisions is not None and clustering.revision not in revisions:
        raise RevisionStale(
            f"The clustering {clustering.id} is at revision {clustering.revision} now; read it "
            "again and retry."
        )


def lock_clustering(session: Session, clustering: Clustering) -> Clustering:
    """Locks the clustering, and the dataset against deletions of images."""
    session.execute(
        select(Dataset.id).where(Dataset.id == clustering.dataset_id).with_for_update(read=True)
    )
    session.refresh(clustering, with_for_update=True)
    return clustering


def same_names(session: Session, operation: ClusteringOperation) -> dict[str, list[int]]:
    """Names of the clusters that the operation changed which other active clusters have too."""
    changed = [int(number) for number in operation.clusters_before]
    own = (Cluster.clustering_id == operation.clustering_id, Cluster.active)
    names = select(Cluster.label).where(*own, Cluster.cluster_id.in_(changed[:_MAX_CHECKED]))
    rows = session.execute(
        select(Cluster.label, Cluster.cluster_id)
        .where(*own, Cluster.label.in_(names))
        .order_by(Cluster.cluster_id)
    )
    found: dict[str, list[int]] = {}
    for label, number in rows:
        found.setdefault(label, []).append(number)
    return {label: numbers for label, numbers in found.items() if len(numbers) > 1}
