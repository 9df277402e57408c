"""A cluster is split by the features of its images, in any order of the stored features."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sqlalchemy import delete

from app.core.clusterings import splitting
from app.core.clusterings.operations import Redo, Rename, Split, Undo, apply_operation
from app.core.platform.errors import (
    FeaturesMissing,
    InvalidRequest,
    NotFound,
    QueueFull,
    RevisionStale,
)
from app.core.platform.tables import Cluster, Image
from app.core.runtime import Runtime
from tests.core.clustering_rows import (
    FOLDER,
    TENANT,
    Stored,
    clusters,
    edit,
    places,
    save_features,
    store,
)

# Cluster 0 holds twelve images of three kinds: six, four and two; cluster 1 holds another two.
KINDS = [0, 1, 0, 2, 0, 1, 0, 1, 0, 2, 0, 1]


def some_features(kinds: list[int]) -> npt.NDArray[np.float32]:
    noise = np.random.default_rng(0).normal(scale=0.01, size=(len(kinds), 8))
    return (5 * np.eye(8)[kinds] + noise).astype(np.float32)


@pytest.fixture
def stored(any_runtime: Runtime) -> Stored:
    return store(any_runtime, [0] * 12 + [1] * 2)


def test_similar_images_stay_together(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))

    row = edit(any_runtime, stored, Split(cluster_id=0, parts=3))

    where = places(any_runtime, stored)
    assert [where[i] for i in stored.images] == [{0: 0, 1: 2, 2: 3}[k] for k in KINDS] + [1, 1]
    found = clusters(any_runtime, stored)
    assert [found[n][0] for n in (0, 2, 3)] == ["cluster 0", "cluster 0 (2)", "cluster 0 (3)"]
    with any_runtime.db.read() as session:
        assert not session.get_one(Cluster, (stored.clustering_id, 2)).named
    assert row.moved == 6
    edit(any_runtime, stored, Undo())
    where = places(any_runtime, stored)
    assert [where[i] for i in stored.images] == [0] * 12 + [1] * 2


def test_redo_gives_the_parts_their_numbers_again(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))
    edit(any_runtime, stored, Split(cluster_id=0, parts=3))
    split = places(any_runtime, stored), clusters(any_runtime, stored)
    edit(any_runtime, stored, Undo())
    edit(any_runtime, stored, Redo())
    assert (places(any_runtime, stored), clusters(any_runtime, stored)) == split


@pytest.mark.parametrize(
    ("leave", "expected"),
    [
        ([1, 2], {0: 0, 1: 2, 2: 3}),
        ([2], {0: 0, 1: 0, 2: 2}),
        ([0], {0: 2, 1: 0, 2: 0}),
        ([2, 0, 2], {0: 2, 1: 0, 2: 3}),
    ],
)
def test_chosen_parts_leave(
    any_runtime: Runtime, stored: Stored, leave: list[int], expected: dict[int, int]
) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))
    row = edit(any_runtime, stored, Split(cluster_id=0, parts=3, leave=leave))
    where = places(any_runtime, stored)
    assert [where[i] for i in stored.images][:12] == [expected[kind] for kind in KINDS]
    assert row.arguments["leave"] == sorted(set(leave))
    assert clusters(any_runtime, stored)[2] == ("cluster 0 (2)", True)
    edit(any_runtime, stored, Undo())
    assert set(places(any_runtime, stored).values()) == {0, 1}


@pytest.mark.parametrize("leave", [[3], [0, 1, 2]])
def test_parts_that_cannot_leave(any_runtime: Runtime, stored: Stored, leave: list[int]) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))
    with pytest.raises(InvalidRequest) as refused:
        edit(any_runtime, stored, Split(cluster_id=0, parts=3, leave=leave))
    assert refused.value.errors[0].field == "leave"
    assert set(places(any_runtime, stored).values()) == {0, 1}


def test_a_preview_shows_the_parts_of_the_split(any_runtime: Runtime, stored: Stored) -> None:
    features = some_features([*KINDS, 5, 5])
    features[4] = 5 * np.eye(8)[0]  # the center of the largest part, and 2 is far from it
    features[2] += np.eye(8)[6]
    save_features(any_runtime, features, list(range(14)))
    where = (TENANT, stored.clustering_id)
    preview = splitting.preview_split(
        any_runtime.db, any_runtime.storage, *where, 0, parts=3, seed=0
    )
    assert (preview.revision, [part.size for part in preview.parts]) == (1, [6, 4, 2])
    names = [[example.name for example in part.examples] for part in preview.parts]
    assert [set(shown) for shown in names] == [
        {f"{position}.png" for position, kind in enumerate(KINDS) if kind == wanted}
        for wanted in range(3)
    ]
    assert names[0][-1] == "2.png"
    edit(any_runtime, stored, Split(cluster_id=0, parts=3, leave=[1]), revision=1)
    found = places(any_runtime, stored)
    moved = {example.image_id for example in preview.parts[1].examples}
    assert {image_id for image_id, place in found.items() if place == 2} == moved


def test_a_preview_of_an_unknown_cluster(runtime: Runtime) -> None:
    stored = store(runtime, [0, 0])
    for tenant, number in ((TENANT, 7), ("other", 0)):
        with pytest.raises(NotFound):
            splitting.preview_split(
                runtime.db, runtime.storage, tenant, stored.clustering_id, number, parts=2, seed=0
            )


def test_rows_in_another_order_and_more_of_them(any_runtime: Runtime, stored: Stored) -> None:
    """Rows of images that were deleted, or that another dataset has, too."""
    order = np.random.default_rng(1).permutation(40).tolist()
    kinds = [KINDS[position] if position < 12 else 7 for position in order]
    save_features(any_runtime, some_features(kinds), order)
    edit(any_runtime, stored, Split(cluster_id=0, parts=3))
    where = places(any_runtime, stored)
    assert [where[i] for i in stored.images][:12] == [{0: 0, 1: 2, 2: 3}[k] for k in KINDS]


def test_the_same_seed_splits_the_same_way(any_runtime: Runtime, stored: Stored) -> None:
    noise = np.random.default_rng(3).normal(size=(14, 8)).astype(np.float32)
    save_features(any_runtime, noise, list(range(14)))
    found = []
    for _ in range(2):
        edit(any_runtime, stored, Split(cluster_id=0, parts=4, seed=7))
        where = places(any_runtime, stored)
        first = min(place for place in where.values() if place > 1)
        found.append([place - first if place > 1 else None for place in where.values()])
        edit(any_runtime, stored, Undo())
    assert found[0] == found[1]


def test_a_large_cluster_is_sampled(
    any_runtime: Runtime, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "_FIT_ROWS", 8)
    monkeypatch.setattr(splitting, "_CHUNK_ROWS", 5)
    kinds = [0, 1] * 6
    save_features(any_runtime, some_features([*kinds, 5, 5]), list(range(14)))
    edit(any_runtime, stored, Split(cluster_id=0))
    where = places(any_runtime, stored)
    parts = [where[i] for i in stored.images][:12]
    assert {frozenset(parts[0::2]), frozenset(parts[1::2])} == {frozenset({0}), frozenset({2})}


def test_missing_features(any_runtime: Runtime, stored: Stored) -> None:
    with pytest.raises(FeaturesMissing):
        edit(any_runtime, stored, Split(cluster_id=0))
    save_features(any_runtime, some_features(KINDS[:5]), list(range(5)))
    with pytest.raises(FeaturesMissing):
        edit(any_runtime, stored, Split(cluster_id=0))
    any_runtime.storage.write(f"{FOLDER}/features.npy", b"not an array")
    with pytest.raises(FeaturesMissing):
        edit(any_runtime, stored, Split(cluster_id=0))
    assert clusters(any_runtime, stored)[0] == ("cluster 0", True)


def test_images_that_look_the_same_cannot_be_split(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, np.ones((14, 8), dtype=np.float32), list(range(14)))
    with pytest.raises(InvalidRequest, match="only 1 groups"):
        edit(any_runtime, stored, Split(cluster_id=0))
    with pytest.raises(InvalidRequest, match="at most 2, the number of images"):
        edit(any_runtime, stored, Split(cluster_id=1, parts=3))


def test_a_very_long_name_stays_within_bounds(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))
    edit(any_runtime, stored, Rename(cluster_id=0, label="é" * 200))
    edit(any_runtime, stored, Split(cluster_id=0))
    assert clusters(any_runtime, stored)[2][0] == "é" * 196 + " (2)"


def test_a_change_while_the_split_is_computed(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))
    ask: dict[str, Any] = {"revisions": None, "cluster_id": 0, "parts": 2, "seed": 0}
    plan = splitting.plan_split(
        any_runtime.db, any_runtime.storage, TENANT, stored.clustering_id, **ask
    )
    edit(any_runtime, stored, Rename(cluster_id=0, label="x"))
    operation = Split(cluster_id=0, plan=plan)
    with any_runtime.db.write() as session, pytest.raises(RevisionStale):
        apply_operation(session, TENANT, stored.clustering_id, operation)
    assert set(places(any_runtime, stored).values()) == {0, 1}


def test_images_deleted_while_the_split_is_computed(any_runtime: Runtime, stored: Stored) -> None:
    save_features(any_runtime, some_features([*KINDS, 5, 5]), list(range(14)))
    ask: dict[str, Any] = {"revisions": {1}, "cluster_id": 0, "parts": 3, "seed": 0}
    plan = splitting.plan_split(
        any_runtime.db, any_runtime.storage, TENANT, stored.clustering_id, **ask
    )
    with any_runtime.db.write() as session:
        session.execute(delete(Image).where(Image.id == stored.images[1]))
        operation = Split(cluster_id=0, parts=3, plan=plan)
        apply_operation(session, TENANT, stored.clustering_id, operation)
    assert sorted(places(any_runtime, stored).values()) == [0] * 6 + [1] * 2 + [2] * 3 + [3] * 2
    clusters(any_runtime, stored)


def test_a_split_of_a_stale_revision_is_not_computed(runtime: Runtime) -> None:
    stored = store(runtime, [0, 0])
    ask: dict[str, Any] = {"revisions": {9}, "cluster_id": 0, "parts": 2, "seed": 0}
    assert (
        splitting.plan_split(runtime.db, runtime.storage, TENANT, stored.clustering_id, **ask)
        is None
    )


def test_splits_wait_for_each_other(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splitting, "_WAIT_SECONDS", 0.01)
    stored = store(runtime, [0, 0])
    with splitting._split_slot, pytest.raises(QueueFull):
        edit(runtime, stored, Split(cluster_id=0))
