"""The current clustering of a dataset: the one that gives the dataset its labels.

A person chooses it. Without a choice it is the first clustering, of a sweep the suggested one, and
a later clustering never replaces it by itself. Every change is recorded, and can be rolled back.
"""

from sqlalchemy import CursorResult, Select, func, select, update
from sqlalchemy.orm import Session

from app.core.platform.errors import NothingToRollBack
from app.core.platform.history import rollback_stack
from app.core.platform.tables import Clustering, CurrentClusteringChange, Dataset

# Functions that change something need a locked dataset.


def set_current(
    session: Session, dataset: Dataset, clustering: Clustering, *, changed_by: str | None
) -> None:
    """Chooses a clustering of the dataset; choosing it again is not recorded."""
    if dataset.current_clustering_id != clustering.id:
        _change(session, dataset, "set", clustering.id, changed_by)


def set_first(session: Session, clustering: Clustering) -> None:
    """Makes a new clustering the current one if the dataset has none. Needs no lock."""
    result = session.execute(
        update(Dataset)
        .where(Dataset.id == clustering.dataset_id, Dataset.current_clustering_id.is_(None))
        .values(current_clustering_id=clustering.id)
    )
    assert isinstance(result, CursorResult)
    if result.rowcount:
        _record(session, clustering.dataset_id, "first", None, clustering.id, None)


def rollback_current(session: Session, dataset: Dataset, *, changed_by: str | None) -> None:
    """Undoes the last choice; a second rollback undoes the one before it."""
    earlier = _earlier(session, dataset)
    if earlier is None:
        raise NothingToRollBack(
            f"The dataset {dataset.id} has no earlier current clustering that still exists."
        )
    _change(session, dataset, "rollback", earlier, changed_by)


def forget_deleted(
    session: Session, dataset: Dataset, clustering_id: str, *, changed_by: str | None
) -> None:
    """Goes back to the choice before, after the deletion of the current clustering."""
    if dataset.current_clustering_id == clustering_id:
        _change(session, dataset, "delete", _earlier(session, dataset), changed_by)


def select_changes(dataset: Dataset) -> Select[CurrentClusteringChange]:
    return select(CurrentClusteringChange).where(CurrentClusteringChange.dataset_id == dataset.id)


def _earlier(session: Session, dataset: Dataset) -> str | None:
    """The choice before the current one. Skips deleted clusterings."""
    changes = session.scalars(select_changes(dataset).order_by(CurrentClusteringChange.number))
    stack = rollback_stack((each.kind, each.before, each.clustering_id) for each in changes)
    exists = set(session.scalars(select(Clustering.id).where(Clustering.id.in_(stack))))
    found = (each for each in reversed(stack) if each in exists)
    return next((each for each in found if each != dataset.current_clustering_id), None)


def _change(
    session: Session, dataset: Dataset, kind: str, clustering_id: str | None, by: str | None
) -> None:
    _record(session, dataset.id, kind, dataset.current_clustering_id, clustering_id, by)
    dataset.current_clustering_id = clustering_id
    session.flush()


def _record(
    session: Session,
    dataset_id: str,
    kind: str,
    before: str | None,
    clustering_id: str | None,
    changed_by: str | None,
) -> None:
    last = select(func.max(CurrentClusteringChange.number))
    number = session.scalar(last.where(CurrentClusteringChange.dataset_id == dataset_id)) or 0
    session.add(
        CurrentClusteringChange(
            dataset_id=dataset_id,
            number=number + 1,
            kind=kind,
            before=before,
            clustering_id=clustering_id,
            changed_by=changed_by,
        )
    )
