"""Operations on a clustering: their effect, their history, and undo."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

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
    Selection,
    Split,
    Undo,
    apply_operation,
)
from app.core.clusterings.operations import editor as editor_module
from app.core.clusterings.operations.editor import ClusteringEditor
from app.core.clusterings.rows import Assigned, refresh_clusters
from app.core.platform.errors import (
    InvalidRequest,
    NotFound,
    NothingToRedo,
    NothingToUndo,
    RevisionStale,
)
from app.core.platform.tables import (
    EXCLUDED,
    Assignment,
    AssignmentChange,
    Cluster,
    Clustering,
    ClusteringOperation,
    Image,
)
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, clusters, edit, places, store

# cluster 0 has three images, 1 has two, 2 has one, 3 has none
PLACES = [0, 0, 0, 1, 1, 2]


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    return store(any_runtime, PLACES, n_clusters=4)


def in_order(runtime: Runtime, stored: Stored) -> list[int]:
    where = places(runtime, stored)
    return [where[image_id] for image_id in stored.images]


def test_rename(any_runtime: Runtime, stored: Stored) -> None:
    row = edit(any_runtime, stored, Rename(cluster_id=1, label="Hunde 🐕"))

    assert (row.revision, row.kind, row.moved) == (2, "rename", 0)
    assert row.arguments == {"cluster_id": 1, "label": "Hunde 🐕"}
    assert row.clusters_before == {"1": {"label": "cluster 1", "named": False, "active": True}}
    assert clusters(any_runtime, stored)[1] == ("Hunde 🐕", True)
    with any_runtime.db.read() as session:
        assert session.get_one(Clustering, stored.clustering_id).revision == 2


def test_merge_into_the_largest(any_runtime: Runtime, stored: Stored) -> None:
    row = edit(any_runtime, stored, Merge(cluster_ids=[2, 0, 1], label="all"))

    assert in_order(any_runtime, stored) == [0] * 6
    assert (row.moved, row.arguments["into"]) == (3, 0)
    assert clusters(any_runtime, stored) == {
        0: ("all", True),
        1: ("cluster 1", False),
        2: ("cluster 2", False),
        3: ("cluster 3", True),
    }
    with any_runtime.db.read() as session:
        changes = session.scalars(select(AssignmentChange).order_by(AssignmentChange.image_id))
        assert [(c.image_id, c.revision, c.before) for c in changes] == [
            (stored.images[3], 2, 1),
            (stored.images[4], 2, 1),
            (stored.images[5], 2, 2),
        ]


def test_merge_into_a_chosen_one(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Merge(cluster_ids=[0, 2], into=2))
    assert in_order(any_runtime, stored) == [2, 2, 2, 1, 1, 2]
    assert clusters(any_runtime, stored)[2] == ("cluster 2", True)


def test_clusters_of_one_size_merge_into_the_first(any_runtime: Runtime) -> None:
    stored = store(any_runtime, [0, 1])
    assert edit(any_runtime, stored, Merge(cluster_ids=[1, 0])).arguments["into"] == 0


def test_move_to_a_cluster(any_runtime: Runtime, stored: Stored) -> None:
    ids = [stored.images[0], stored.images[3], stored.images[5], stored.images[0]]
    row = edit(any_runtime, stored, Move(image_ids=ids, cluster_id=2))

    assert in_order(any_runtime, stored) == [2, 0, 0, 2, 1, 2]
    assert row.moved == 2  # one was there already
    assert row.arguments == {"images": 3, "cluster_id": 2, "new_cluster": None}
    clusters(any_runtime, stored)


def test_move_to_a_new_cluster(any_runtime: Runtime, stored: Stored) -> None:
    row = edit(any_runtime, stored, Move(image_ids=stored.images[:4], new_cluster="new"))

    assert in_order(any_runtime, stored) == [4, 4, 4, 4, 1, 2]
    assert row.clusters_before == {"4": {"label": None, "active": False}}
    found = clusters(any_runtime, stored)
    assert found[4] == ("new", True)
    assert found[0] == ("cluster 0", True)  # empty, but still there to be filled
    with any_runtime.db.read() as session:
        assert session.get_one(Clustering, stored.clustering_id).n_clusters == 5


def test_excluded_images_come_back_by_a_move(any_runtime: Runtime, stored: Stored) -> None:
    row = edit(any_runtime, stored, Exclude(image_ids=stored.images[2:4]))
    assert in_order(any_runtime, stored) == [0, 0, EXCLUDED, EXCLUDED, 1, 2]
    assert row.moved == 2
    clusters(any_runtime, stored)

    edit(any_runtime, stored, Move(image_ids=[stored.images[2]], cluster_id=3))
    assert in_order(any_runtime, stored) == [0, 0, 3, EXCLUDED, 1, 2]
    clusters(any_runtime, stored)


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        (Selection(cluster_id=0), []),
        (Selection(cluster_id=0, min_probability=0.8), [2]),  # 0.95, 0.83 and 0.71
        (Selection(cluster_id=0, max_probability=0.8), [0, 1]),
        (Selection(cluster_id=0, min_probability=0.8, max_probability=0.9), [0, 2]),
        (Selection(cluster_id=3), [0, 1, 2]),
    ],
)
def test_a_selection_of_a_cluster(
    any_runtime: Runtime, stored: Stored, selection: Selection, left: list[int]
) -> None:
    row = edit(any_runtime, stored, Exclude(selection=selection))
    expected = [
        EXCLUDED if selection.cluster_id == place and position not in left else place
        for position, place in enumerate(PLACES)
    ]
    assert in_order(any_runtime, stored) == expected
    assert row.moved == row.arguments["images"] == expected.count(EXCLUDED)
    edit(any_runtime, stored, Undo())
    assert in_order(any_runtime, stored) == PLACES
    clusters(any_runtime, stored)


def test_a_selection_except_some_images(any_runtime: Runtime, stored: Stored) -> None:
    selection = Selection(cluster_id=0, except_image_ids=[stored.images[1], stored.images[5]])
    row = edit(any_runtime, stored, Move(selection=selection, new_cluster="others"))
    assert in_order(any_runtime, stored) == [4, 0, 4, 1, 1, 2]
    assert row.arguments == {
        "images": 2,
        "selection": {
            "cluster_id": 0,
            "min_probability": None,
            "max_probability": None,
            "except_images": 2,
        },
        "cluster_id": 4,
        "new_cluster": "others",
    }
    clusters(any_runtime, stored)


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


@pytest.mark.parametrize(
    ("operation", "field"),
    [
        (Rename(cluster_id=9, label="x"), "cluster_id"),
        (Rename(cluster_id=2, label="x"), "cluster_id"),
        (Merge(cluster_ids=[0, 9]), "cluster_ids"),
        (Merge(cluster_ids=[0, 2]), "cluster_ids"),
        (Merge(cluster_ids=[0, 0]), "cluster_ids"),
        (Merge(cluster_ids=[0, 1], into=3), "into"),
        (Split(cluster_id=9), "cluster_id"),
        (Split(cluster_id=2), "cluster_id"),
        (Split(cluster_id=3), "parts"),
        (Move(image_ids=["img_none"], cluster_id=0), "image_ids"),
        (Exclude(image_ids=["img_none"]), "image_ids"),
        (Exclude(selection=Selection(cluster_id=9)), "selection.cluster_id"),
        (Move(selection=Selection(cluster_id=2), cluster_id=0), "selection.cluster_id"),
    ],
)
def test_unknown_clusters_are_refused(
    any_runtime: Runtime, stored: Stored, operation: Operation, field: str
) -> None:
    edit(any_runtime, stored, Merge(cluster_ids=[1, 2]))
    before = places(any_runtime, stored), clusters(any_runtime, stored)
    with pytest.raises(InvalidRequest) as refused:
        edit(any_runtime, stored, operation)
    assert refused.value.errors[0].field == field
    assert (places(any_runtime, stored), clusters(any_runtime, stored)) == before


@pytest.mark.parametrize("cluster_id", [9, 2])
def test_images_cannot_be_moved_to_an_unknown_cluster(
    any_runtime: Runtime, stored: Stored, cluster_id: int
) -> None:
    edit(any_runtime, stored, Merge(cluster_ids=[1, 2]))
    with pytest.raises(InvalidRequest):
        edit(any_runtime, stored, Move(image_ids=stored.images, cluster_id=cluster_id))


def test_images_of_another_clustering_are_refused(any_runtime: Runtime, stored: Stored) -> None:
    other = store(any_runtime, [0])
    with pytest.raises(InvalidRequest, match=other.images[0]):
        edit(any_runtime, stored, Exclude(image_ids=[stored.images[0], *other.images]))


def test_another_tenant_sees_nothing(any_runtime: Runtime, stored: Stored) -> None:
    with any_runtime.db.write() as session, pytest.raises(NotFound):
        apply_operation(session, "other", stored.clustering_id, Undo())


def test_other_clusterings_stay_as_they_are(any_runtime: Runtime, stored: Stored) -> None:
    """Also one of the same images."""
    other = store(any_runtime, PLACES)
    edit(any_runtime, stored, Merge(cluster_ids=[0, 1, 2]))
    edit(any_runtime, stored, Exclude(image_ids=stored.images[:2]))
    edit(any_runtime, stored, Undo())
    assert in_order(any_runtime, other) == PLACES


def test_many_values_are_sent_in_several_statements(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor_module, "_CHUNK", 2)
    edit(any_runtime, stored, Move(image_ids=stored.images, new_cluster="x"))
    assert in_order(any_runtime, stored) == [4] * 6
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Merge(cluster_ids=[3, 2, 1, 0]))
    assert in_order(any_runtime, stored) == [0] * 6
    edit(any_runtime, stored, Undo())
    assert in_order(any_runtime, stored) == PLACES
    clusters(any_runtime, stored)


def test_a_stale_revision_changes_nothing(any_runtime: Runtime, stored: Stored) -> None:
    edit(any_runtime, stored, Rename(cluster_id=0, label="a"), revision=1)
    with pytest.raises(RevisionStale):
        edit(any_runtime, stored, Rename(cluster_id=0, label="b"), revision=1)
    assert clusters(any_runtime, stored)[0] == ("a", True)


def test_one_of_several_concurrent_edits_succeeds(any_runtime: Runtime, stored: Stored) -> None:
    def rename(number: int) -> bool:
        operation = Rename(cluster_id=0, label=str(number))
        try:
            with any_runtime.db.write() as session:
                apply_operation(session, TENANT, stored.clustering_id, operation, revisions={1})
        except RevisionStale:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(rename, range(8))) == 1
    with any_runtime.db.read() as session:
        assert session.get_one(Clustering, stored.clustering_id).revision == 2
