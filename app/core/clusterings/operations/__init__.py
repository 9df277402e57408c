"""Operations of users on a clustering. Each creates one revision and can be undone."""

from app.core.clusterings.operations.apply import (
    apply_operation,
    check_revision,
    created_clusters,
    lock_clustering,
    same_names,
)
from app.core.clusterings.operations.kinds import (
    KINDS,
    Exclude,
    Merge,
    Move,
    Operation,
    Rename,
    Split,
    Undo,
)

__all__ = [
    "KINDS",
    "Exclude",
    "Merge",
    "Move",
    "Operation",
    "Rename",
    "Split",
    "Undo",
    "apply_operation",
    "check_revision",
    "created_clusters",
    "lock_clustering",
    "same_names",
]
