"""Undo and redo restore what an operation changed."""

from collections.abc import Callable

import pytest
from sqlalchemy import delete, select

from app.core.clusterings.extension import find_targets
from app.core.clusterings.operations import (
    Exclude,
    Merge,
    Move,
    Operation,
    Redo,
    Rename,
    Undo,
)
from app.core.clusterings.operations import editor as editor_module
from app.core.clusterings.operations.editor import ClusteringEditor
from app.core.clusterings.rows import Assigned, refresh_clusters
from app.core.platform.errors import (
    NothingToRedo,
    NothingToUndo,
)
from app.core.platform.tables import (
    Assignment,
    Cluster,
    Clustering,
    ClusteringOperation,
    Image,
)
from app.core.runtime import Runtime
from tests.core.clustering_rows import Stored, clusters, edit, places
from tests.core.clusterings.operations.conftest import PLACES, in_order

OPERATIONS: list[tuple[str, dict[str, object]]] = [
    ("rename", {"cluster_id": 0, "label": "x"}),
    ("merge", {"cluster_ids": [0, 1, 2], "label": "x"}),
    ("move", {"cluster_id": 2}),
    ("move", {"new_cluster": "x"}),
    ("exclude", {}),
]


def made(kind: str, arguments: dict[str, object], stored: Stored) -> Operation:
    kinds: dict[str, Callable[..., Operation]] = {
        "rename": Rename,
        "merge": Merge,
        "move": Move,
        "exclude": Exclude,
    }
    if kind in ("move", "exclude"):
        arguments = {**arguments, "image_ids": stored.images[1:4]}
    return kinds[kind](**arguments)


@pytest.mark.parametrize(("kind", "arguments"), OPERATIONS)
def test_undo_restores(
    any_runtime: Runtime, stored: Stored, kind: str, arguments: dict[str, object]
) -> None:
    first = clusters(any_runtime, stored)
    edit(any_runtime, stored, made(kind, arguments, stored))
    after = clusters(any_runtime, stored)

    row = edit(any_runtime, stored, Undo())

    assert (row.revision, row.kind, row.undoes) == (3, "undo", 2)
    assert in_order(any_runtime, stored) == PLACES
    found = clusters(any_runtime, stored)
    assert {number: found[number] for number in first} == first
    assert all(not active for number, (_, active) in found.items() if number not in first)
    # what the undo says was before is what was there after the operation
    was = {n: (b["label"], b["active"]) for n, b in row.clusters_before.items()}
    assert was == {n: after[int(n)] for n in was}
    with any_runtime.db.read() as session:
        undone = session.get_one(ClusteringOperation, (stored.clustering_id, 2))
        assert undone.undone_by == 3


def named(runtime: Runtime, stored: Stored) -> set[int]:
    with runtime.db.read() as session:
        query = select(Cluster.cluster_id).where(
            Cluster.clustering_id == stored.clustering_id, Cluster.named, Cluster.active
        )
        return set(session.scalars(query))


def test_names_that_a_person_gave(any_runtime: Runtime, stored: Stored) -> None:
    steps: list[tuple[Operation, set[int]]] = [
        (Rename(cluster_id=3, label="cluster 3"), {3}),
        (Merge(cluster_ids=[0, 1]), {3}),
        (Merge(cluster_ids=[0, 2], label="pets"), {0, 3}),
        (Move(image_ids=stored.images[:1], new_cluster="cats"), {0, 3, 4}),
    ]
    seen: list[set[int]] = [set()]
    for operation, expected in steps:
        edit(any_runtime, stored, operation)
        assert named(any_runtime, stored) == expected
        seen.append(expected)
    for expected in seen[-2::-1]:
        edit(any_runtime, stored, Undo())
        assert named(any_runtime, stored) == expected


def test_undo_undoes_one_operation_at_a_time(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Rename(cluster_id=0, label="a"))
    edit(any_runtime, stored, Rename(cluster_id=0, label="b"))
    assert edit(any_runtime, stored, Undo()).undoes == 3
    edit(any_runtime, stored, Rename(cluster_id=0, label="c"))
    assert [edit(any_runtime, stored, Undo()).undoes for _ in range(2)] == [5, 2]
    assert clusters(any_runtime, stored)[0] == ("cluster 0", True)
    with pytest.raises(NothingToUndo):
        edit(any_runtime, stored, Undo())


def test_redo_does_undone_operations_again(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Rename(cluster_id=0, label="a"))
    edit(any_runtime, stored, Merge(cluster_ids=[0, 1, 2], label="b"))
    edit(any_runtime, stored, Move(image_ids=stored.images[:2], new_cluster="c"))
    states = [(in_order(any_runtime, stored), clusters(any_runtime, stored))]
    for _ in range(3):
        edit(any_runtime, stored, Undo())
        states.append((in_order(any_runtime, stored), clusters(any_runtime, stored)))
    assert states[-1][0] == PLACES
    for again, state in zip([2, 3, 4], states[-2::-1], strict=True):
        row = edit(any_runtime, stored, Redo())
        assert (row.kind, row.arguments) == ("redo", {"revision": again})
        assert in_order(any_runtime, stored) == state[0]
        found = clusters(any_runtime, stored)
        assert {n: s for n, s in found.items() if s[1]} == {
            n: s for n, s in state[1].items() if s[1]
        }
    with pytest.raises(NothingToRedo):
        edit(any_runtime, stored, Redo())
    assert [edit(any_runtime, stored, Undo()).undoes for _ in range(3)] == [4, 3, 2]


def test_redo_after_another_edit_is_refused(any_runtime: Runtime, stored: Stored) -> None:
    with pytest.raises(NothingToRedo):
        edit(any_runtime, stored, Redo())
    edit(any_runtime, stored, Rename(cluster_id=0, label="a"))
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Rename(cluster_id=1, label="b"))
    with pytest.raises(NothingToRedo):
        edit(any_runtime, stored, Redo())
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Redo())
    with pytest.raises(NothingToRedo):  # not that of revision 2
        edit(any_runtime, stored, Redo())
    assert clusters(any_runtime, stored)[0] == ("cluster 0", True)


def test_redo_after_images_were_added_is_refused(any_runtime: Runtime, stored: Stored) -> None:
    """They may be in a cluster that the operation would merge into another."""
    edit(any_runtime, stored, Merge(cluster_ids=[0, 1]))
    edit(any_runtime, stored, Undo())
    with any_runtime.db.write() as session:
        clustering = session.get_one(Clustering, stored.clustering_id)
        editor_module.ClusteringEditor(session, clustering).finish("extend", {}, created_by=None)
    with pytest.raises(NothingToRedo):
        edit(any_runtime, stored, Redo())


def test_a_new_cluster_stays_if_images_were_added_to_it(
    any_runtime: Runtime, stored: Stored
) -> None:
    first, *_, last = stored.images
    with any_runtime.db.write() as session:
        session.execute(delete(Assignment).where(Assignment.image_id == last))
        refresh_clusters(session, stored.clustering_id)
    edit(any_runtime, stored, Move(image_ids=[first], new_cluster="cats"))
    edit(any_runtime, stored, Merge(cluster_ids=[4, 2], into=4))
    with any_runtime.db.write() as session:  # as a job adds images
        editor = ClusteringEditor(session, session.get_one(Clustering, stored.clustering_id))
        editor.add_images([Assigned(last, 4, 0.9, 0.8, 0.1)])
        editor.finish("extend", {}, created_by=None)
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Undo())
    assert in_order(any_runtime, stored) == [0, 0, 0, 1, 1, 4]
    assert clusters(any_runtime, stored)[4] == ("cats", True)
    with any_runtime.db.read() as session:
        assert session.get_one(Clustering, stored.clustering_id).n_clusters == 5


def test_the_clusters_of_a_model_follow_a_redo(any_runtime: Runtime, stored: Stored) -> None:
    """New images of a merged cluster go to the merged one."""

    def targets() -> list[list[int]]:
        with any_runtime.db.read() as session:
            clustering = session.get_one(Clustering, stored.clustering_id)
            return find_targets(session, clustering, 3)

    edit(any_runtime, stored, Merge(cluster_ids=[0, 1]))
    edit(any_runtime, stored, Undo())
    assert targets() == [[0], [1], [2]]
    edit(any_runtime, stored, Redo())
    assert targets() == [[0], [0], [2]]


def test_undo_skips_deleted_images(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Merge(cluster_ids=[0, 1, 2]))
    with any_runtime.db.write() as session:
        session.execute(delete(Image).where(Image.id.in_([stored.images[0], stored.images[3]])))
        refresh_clusters(session, stored.clustering_id)
    row = edit(any_runtime, stored, Undo())
    assert row.moved == 2
    assert list(places(any_runtime, stored).values()) == [0, 0, 1, 2]
    clusters(any_runtime, stored)
