"""What people do to a clustering. Each operation makes one revision and can be taken back."""

from app.core.clusterings.operations.kinds import (
    Exclude,
    Merge,
    Move,
    Operation,
    Rename,
    Split,
    Undo,
)
from app.core.clusterings.operations.perform import check_revision, perform

__all__ = [
    "Exclude",
    "Merge",
    "Move",
    "Operation",
    "Rename",
    "Split",
    "Undo",
    "check_revision",
    "perform",
]
