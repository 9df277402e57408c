"""Undo and redo: an undo reverts an operation, a redo reverts the undo of it."""

from typing import Any

from sqlalchemy import Select, SQLColumnExpression, func, select
from sqlalchemy.orm import aliased

from app.core.clusterings.operations.editor import ClusteringEditor, chunked
from app.core.platform.errors import NothingToRedo, NothingToUndo
from app.core.platform.tables import Assignment, Cluster, Clustering, ClusteringOperation

_REVERTS = ("undo", "redo")


def next_undo(clustering_id: str | SQLColumnExpression[str]) -> Select[int]:
    """The revision of the operation that an undo reverts."""
    return (
        select(ClusteringOperation.revision)
        .where(
            ClusteringOperation.clustering_id == clustering_id,
            ClusteringOperation.kind.not_in((*_REVERTS, "extend")),
            ClusteringOperation.undone_by.is_(None),
        )
        .order_by(ClusteringOperation.revision.desc())
        .limit(1)
    )


def next_redo(clustering_id: str | SQLColumnExpression[str]) -> Select[int | None]:
    """The revision of the operation that a redo does again: the newest undone one, if nothing but
    undo and redo came after it was undone."""
    edit = aliased(ClusteringOperation)
    last_edit = (
        select(edit.revision)
        .where(edit.clustering_id == clustering_id, edit.kind.not_in(_REVERTS))
        .order_by(edit.revision.desc())
        .limit(1)
        .correlate(Clustering)
        .scalar_subquery()
    )
    return (
        select(ClusteringOperation.undoes)
        .where(
            ClusteringOperation.clustering_id == clustering_id,
            ClusteringOperation.revision > func.coalesce(last_edit, 0),
            ClusteringOperation.kind == "undo",
            ClusteringOperation.undone_by.is_(None),
        )
        .order_by(ClusteringOperation.revision.desc())
        .limit(1)
    )


def undo(editor: ClusteringEditor, created_by: str | None) -> ClusteringOperation:
    revision = editor.session.scalar(next_undo(editor.clustering.id))
    if revision is None:
        raise NothingToUndo("Every operation on this clustering is already undone.")
    undone = _operation(editor, revision)
    _revert(editor, undone)
    created = set(created_clusters(undone))
    for split in splits_of(undone):  # images that were added to its parts since
        editor.move(Assignment.cluster_id.in_(split["new"]), split["cluster_id"])
        created -= set(split["new"])
    _keep_filled(editor, sorted(created))
    undone.undone_by = editor.revision
    return editor.finish("undo", {}, created_by=created_by, undoes=revision)


def redo(editor: ClusteringEditor, created_by: str | None) -> ClusteringOperation:
    revision = editor.session.scalar(next_redo(editor.clustering.id))
    if revision is None:
        raise NothingToRedo("No operation was undone since the last edit of this clustering.")
    again = _operation(editor, revision)
    assert again.undone_by is not None
    reverted = _operation(editor, again.undone_by)
    _revert(editor, reverted)
    again.undone_by, reverted.undone_by = None, editor.revision
    arguments = {"revision": revision}
    return editor.finish("redo", arguments, created_by=created_by, undoes=reverted.revision)


def created_clusters(operation: ClusteringOperation) -> list[int]:
    """The clusters that an operation created."""
    before = operation.clusters_before.items()
    return sorted(int(number) for number, state in before if state["label"] is None)


def merges_of(operation: ClusteringOperation) -> list[dict[str, Any]]:
    """The merges of a merge or an adoption: `cluster_ids`, and `into` which of them."""
    if operation.kind == "merge":
        return [operation.arguments]
    return list(operation.arguments.get("merges", []))


def splits_of(operation: ClusteringOperation) -> list[dict[str, Any]]:
    """The splits of a split or an adoption: `cluster_id`, and the clusters that are `new`."""
    if operation.kind == "split":
        return [{**operation.arguments, "new": created_clusters(operation)}]
    return list(operation.arguments.get("splits", []))


def _keep_filled(editor: ClusteringEditor, created: list[int]) -> None:
    """Keeps clusters that an undone operation created if images were added to them since: no
    image is left in a cluster that is not shown."""
    own = Assignment.clustering_id == editor.clustering.id
    for number in created:
        cluster = editor.session.get_one(Cluster, (editor.clustering.id, number))
        filled = select(Assignment.image_id).where(own, Assignment.cluster_id == number)
        if editor.session.scalar(select(filled.exists())):
            editor.change(cluster, active=True)


def _operation(editor: ClusteringEditor, revision: int) -> ClusteringOperation:
    return editor.session.get_one(ClusteringOperation, (editor.clustering.id, revision))


def _revert(editor: ClusteringEditor, operation: ClusteringOperation) -> None:
    """Gives clusters and images the state that they had before the operation."""
    for chunk in chunked([int(number) for number in operation.clusters_before]):
        rows = editor.session.scalars(
            select(Cluster).where(
                Cluster.clustering_id == editor.clustering.id, Cluster.cluster_id.in_(chunk)
            )
        )
        for cluster in rows.all():
            # a cluster that the operation created keeps its name, for views of older revisions
            editor.change(cluster, **operation.clusters_before[str(cluster.cluster_id)])
    if operation.moved:
        editor.restore(operation.revision)
