"""The current clustering of a dataset changes by choice only, and can be rolled back."""

import pytest
from sqlalchemy import select

from app.core.clusterings.current import rollback_current, select_changes, set_current, set_first
from app.core.clusterings.deletion import delete_clustering
from app.core.clusterings.queries import find_clustering
from app.core.datasets.rows import get_dataset
from app.core.platform.errors import NotFound, NothingToRollBack
from app.core.platform.ids import new_id
from app.core.platform.tables import Clustering, CurrentClusteringChange, Dataset
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, store


@pytest.fixture
def dataset_id(any_runtime: Runtime) -> str:
    stored = store(any_runtime, [0, 1])
    with any_runtime.db.write() as session:
        clustering = session.get_one(Clustering, stored.clustering_id)
        session.get_one(Dataset, clustering.dataset_id).current_clustering_id = None
        session.delete(clustering)
        return clustering.dataset_id


def _add(runtime: Runtime, dataset_id: str) -> str:
    """Registers a clustering as a job does."""
    with runtime.db.write() as session:
        clustering = Clustering(
            id=new_id("cl"), tenant=TENANT, dataset_id=dataset_id, model_name="m", model_version=1,
            n_clusters=2, image_count=2, metrics={},
        )  # fmt: skip
        session.add(clustering)
        session.flush()
        set_first(session, clustering)
        return clustering.id


def _choose(runtime: Runtime, dataset_id: str, clustering_id: str) -> None:
    with runtime.db.write() as session:
        dataset = get_dataset(session, TENANT, dataset_id, lock=True)
        clustering = session.get_one(Clustering, clustering_id)
        set_current(session, dataset, clustering, changed_by="anna")


def _roll_back(runtime: Runtime, dataset_id: str) -> None:
    with runtime.db.write() as session:
        dataset = get_dataset(session, TENANT, dataset_id, lock=True)
        rollback_current(session, dataset, changed_by=None)


def _delete(runtime: Runtime, clustering_id: str) -> None:
    with runtime.db.write() as session:
        delete_clustering(session, TENANT, clustering_id)


def _current(runtime: Runtime, dataset_id: str) -> str:
    with runtime.db.read() as session:
        dataset = get_dataset(session, TENANT, dataset_id)
        return find_clustering(session, TENANT, dataset, None).id


def _history(runtime: Runtime, dataset_id: str) -> list[tuple[str, str | None, str | None]]:
    with runtime.db.read() as session:
        changes = select_changes(session.get_one(Dataset, dataset_id))
        rows = session.scalars(changes.order_by(CurrentClusteringChange.number))
        return [(row.kind, row.clustering_id, row.changed_by) for row in rows]


def test_only_the_first_becomes_current_by_itself(any_runtime: Runtime, dataset_id: str) -> None:
    with pytest.raises(NotFound, match="no labels yet"):
        _current(any_runtime, dataset_id)
    first, second = _add(any_runtime, dataset_id), _add(any_runtime, dataset_id)
    assert _current(any_runtime, dataset_id) == first
    _choose(any_runtime, dataset_id, second)
    _choose(any_runtime, dataset_id, second)  # not recorded
    assert _current(any_runtime, dataset_id) == second
    assert _history(any_runtime, dataset_id) == [("first", first, None), ("set", second, "anna")]


def test_choices_are_rolled_back_one_by_one(any_runtime: Runtime, dataset_id: str) -> None:
    first, second, third = (_add(any_runtime, dataset_id) for _ in range(3))
    _choose(any_runtime, dataset_id, second)
    _choose(any_runtime, dataset_id, third)
    _roll_back(any_runtime, dataset_id)
    assert _current(any_runtime, dataset_id) == second
    _roll_back(any_runtime, dataset_id)
    assert _current(any_runtime, dataset_id) == first
    with pytest.raises(NothingToRollBack):
        _roll_back(any_runtime, dataset_id)


def test_after_its_deletion_the_choice_before_is_current(
    any_runtime: Runtime, dataset_id: str
) -> None:
    first, second, third = (_add(any_runtime, dataset_id) for _ in range(3))
    _choose(any_runtime, dataset_id, second)
    _choose(any_runtime, dataset_id, third)
    _delete(any_runtime, second)  # not the current one
    _delete(any_runtime, third)
    assert _current(any_runtime, dataset_id) == first
    _delete(any_runtime, first)
    with pytest.raises(NotFound, match="no labels yet"):
        _current(any_runtime, dataset_id)


def test_without_an_earlier_choice_none_is_current(any_runtime: Runtime, dataset_id: str) -> None:
    first, second = _add(any_runtime, dataset_id), _add(any_runtime, dataset_id)
    _delete(any_runtime, first)
    with pytest.raises(NotFound, match="choose one"):
        _current(any_runtime, dataset_id)
    _choose(any_runtime, dataset_id, second)
    assert _current(any_runtime, dataset_id) == second
    with any_runtime.db.read() as session:
        assert session.scalars(select(Clustering.id)).all() == [second]
