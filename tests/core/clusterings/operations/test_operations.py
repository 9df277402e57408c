"""Operations on a clustering: their effect and their history."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from app.core.clusterings.operations import (
    Exclude,
    Merge,
    Move,
    Operation,
    Rename,
    Selection,
    Split,
    Undo,
    apply_operation,
)
from app.core.clusterings.operations import editor as editor_module
from app.core.platform.errors import (
    InvalidRequest,
    NotFound,
    RevisionStale,
)
from app.core.platform.tables import (
    EXCLUDED,
    AssignmentChange,
    Clustering,
)
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, clusters, edit, places, store
from tests.core.clusterings.operations.conftest import PLACES, in_order


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
