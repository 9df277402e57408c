"""Operations of users on a clustering. Each creates one revision and can be undone."""

from app.core.clusterings.operations.apply import (
    apply_operation,
    check_revision,
    lock_clustering,
    same_names,
)
from app.core.clusterings.operations.history import (
    created_clusters,
    merges_of,
    next_redo,
    next_undo,
    splits_of,
)
from app.core.clusterings.operations.kinds import (
    KINDS,
    Exclude,
    Merge,
    Move,
    Operation,
    Redo,
    Rename,
    Selection,
    Split,
    Undo,
)

__all__ = [
    "KINDS",
    "Exclude",
    "Merge",
    "Move",
    "Operation",
    "Redo",
    "Rename",
    "Selection",
    "Split",
    "Undo",
    "apply_operation",
    "check_revision",
    "created_clusters",
    "lock_clustering",
    "merges_of",
    "next_redo",
    "next_undo",
    "same_names",
    "splits_of",
]
