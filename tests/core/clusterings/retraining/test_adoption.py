"""A new clustering takes over the names, edits and rejected groups of the old one."""

from collections.abc import Mapping

import pytest
from sqlalchemy import select

from app.core.clusterings.names import read_merges
from app.core.clusterings.operations import Exclude, Merge, Move, Operation, Redo, Rename, Undo
from app.core.clusterings.retraining import Changes, apply_adoption, plan_adoption, read_changes
from app.core.clusterings.retraining.pair import Decision
from app.core.platform.errors import InvalidRequest, NotPredicted, RevisionStale
from app.core.platform.tables import EXCLUDED, ClusteringOperation, Review
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, clusters, edit, places, retrain, store

A, B, C = 0, 1, 2


def adopt(
    runtime: Runtime,
    old: Stored,
    new: Stored,
    decisions: Mapping[int, Decision] | None = None,
    **revisions: int,
) -> ClusteringOperation:
    plan = plan_adoption(
        runtime.db,
        TENANT,
        new.clustering_id,
        old.clustering_id,
        decisions or {},
    )
    with runtime.db.write() as session:
        return apply_adoption(
            session,
            plan,
            revisions={revisions["revision"]} if "revision" in revisions else None,
            since_revision=revisions.get("since_revision"),
            created_by="anna",
        )


def changes(runtime: Runtime, old: Stored, new: Stored) -> Changes:
    with runtime.db.read() as session:
        return read_changes(session, TENANT, new.clustering_id, old.clustering_id)


def labels(runtime: Runtime, stored: Stored) -> list[str | None]:
    """The name of each image's cluster; None if it is excluded."""
    names, where = clusters(runtime, stored), places(runtime, stored)
    return [None if where[image] == EXCLUDED else names[where[image]][0] for image in stored.images]


def _edit(runtime: Runtime, stored: Stored, *operations: Operation) -> None:
    for operation in operations:
        edit(runtime, stored, operation)


def _named(runtime: Runtime, where: list[int], *names: str) -> Stored:
    stored = store(runtime, where)
    for number, name in enumerate(names):
        edit(runtime, stored, Rename(cluster_id=number, label=name))
    return stored


def test_names_follow_the_images(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 4 + [B] * 4 + [C] * 2, "cats", "dogs")
    new = retrain(any_runtime, old, [2, 2, 2, 0, 0, 0, 0, 0, 1, 1, 2, 0, 1])
    operation = adopt(any_runtime, old, new)
    found = ["cats"] * 3 + ["dogs"] * 5 + ["cluster 1"] * 2 + ["cats", "dogs", "cluster 1"]
    assert labels(any_runtime, new) == found
    assert (operation.kind, operation.created_by, operation.moved) == ("adopt", "anna", 0)
    assert operation.arguments["groups"] == [[A, 2], [B, 0], [C, 1]]


def test_the_changes_add_up(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 4 + [B] * 4 + [C] * 2, "cats", "dogs")
    _edit(any_runtime, old, Exclude(image_ids=[old.images[9]]))
    new = retrain(any_runtime, old, [2, 2, 2, 0, 0, 0, 0, 0, 1, 1, 2, 0, 3])
    found = changes(any_runtime, old, new)
    assert (found.images, found.added, found.missing) == (10, 3, 0)
    cats, dogs, third = found.groups
    assert (cats.label, cats.status, cats.suggested) == ("cats", "kept", "approve")
    assert (cats.stayed, cats.left, cats.came, cats.added) == (3, 1, 0, 1)
    assert (dogs.stayed, dogs.left, dogs.came, dogs.added) == (4, 0, 1, 1)
    assert (third.size, third.stayed, third.came) == (1, 1, 1)  # the excluded one is in its cluster
    assert [(each.cluster_id, each.added, each.sources) for each in found.appeared] == [(3, 1, [])]


def test_a_rejected_group_keeps_exactly_its_images(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 5 + [B] * 5, "cats", "dogs")
    new = retrain(any_runtime, old, [0, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 1])
    adopt(any_runtime, old, new, {A: "reject"})
    assert labels(any_runtime, new) == ["cats"] * 5 + ["dogs"] * 5 + ["cats", "dogs"]


def test_a_rejected_split_is_joined_for_new_photos_too(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 6 + [B] * 4, "cats", "dogs")
    new = retrain(any_runtime, old, [0, 0, 0, 0, 2, 2, 1, 1, 1, 1, 2])
    assert [each.status for each in changes(any_runtime, old, new).groups] == ["split", "kept"]
    adopt(any_runtime, old, new, {A: "reject"})
    assert labels(any_runtime, new) == ["cats"] * 6 + ["dogs"] * 4 + ["cats"]
    with any_runtime.db.read() as session:
        assert read_merges(session, new.clustering_id) == {2: 0}


def test_the_parts_of_an_approved_split_are_numbered(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 6, "cats")
    new = retrain(any_runtime, old, [1, 1, 1, 1, 0, 0])
    adopt(any_runtime, old, new)
    assert labels(any_runtime, new) == ["cats"] * 4 + ["cats (2)"] * 2


def test_a_group_that_a_person_merged_stays_merged(any_runtime: Runtime) -> None:
    old = store(any_runtime, [A] * 3 + [B] * 3 + [C] * 3)
    _edit(any_runtime, old, Merge(cluster_ids=[A, B], into=A, label="pets"))
    new = retrain(any_runtime, old, [1, 1, 1, 2, 2, 2, 0, 0, 2, 1, 2])
    assert changes(any_runtime, old, new).groups[0].status == "kept"
    adopt(any_runtime, old, new)
    assert labels(any_runtime, new) == ["pets"] * 6 + ["cluster 0"] * 2 + ["pets"] * 3


def test_two_named_groups_become_one_only_if_approved(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 4 + [B] * 3, "cats", "dogs")
    where = [0] * 7 + [0]
    new = retrain(any_runtime, old, where)
    cats, dogs = changes(any_runtime, old, new).groups
    assert (cats.status, cats.suggested, cats.merged_with) == ("merged", "approve", [B])
    assert (dogs.status, dogs.suggested, dogs.merged_with) == ("merged", "reject", [A])
    operation = adopt(any_runtime, old, new)
    assert labels(any_runtime, new) == ["cats"] * 4 + ["dogs"] * 3 + ["cats"]
    assert operation.arguments["splits"] == [{"cluster_id": 0, "new": [1]}]

    approved = retrain(any_runtime, new, where)
    operation = adopt(any_runtime, old, approved, {B: "approve"})
    assert labels(any_runtime, approved) == ["cats"] * 8
    assert operation.arguments["dropped_names"] == ["dogs"]


def test_a_merge_needs_the_approval_of_both(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 4 + [B] * 3, "cats", "dogs")
    new = retrain(any_runtime, old, [0] * 7)
    operation = adopt(any_runtime, old, new, {A: "reject", B: "approve"})
    assert labels(any_runtime, new) == ["cats"] * 4 + ["dogs"] * 3
    assert operation.arguments["rejected"] == [A, B]


def test_the_only_name_of_merged_groups_stays(any_runtime: Runtime) -> None:
    old = store(any_runtime, [A] * 4 + [B] * 3)
    _edit(any_runtime, old, Rename(cluster_id=B, label="dogs"))
    new = retrain(any_runtime, old, [0] * 7)
    operation = adopt(any_runtime, old, new, {B: "approve"})
    assert labels(any_runtime, new) == ["dogs"] * 7
    assert operation.arguments["dropped_names"] == []


def test_a_named_group_that_vanished_is_made_again(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 6 + [B] * 6 + [C] * 3 + [3] * 6, "cats", "dogs", "owls")
    new = retrain(any_runtime, old, [0] * 6 + [1] * 6 + [0, 1, 2] + [2] * 6)
    found = changes(any_runtime, old, new).groups[C]
    assert (found.status, found.suggested, found.into) == ("vanished", "reject", [])
    adopt(any_runtime, old, new)
    assert labels(any_runtime, new)[:15] == labels(any_runtime, old)[:15]
    names = [name for name, _ in clusters(any_runtime, new).values()]
    assert names == ["cats", "dogs", "cluster 2", "owls"]


def test_an_empty_named_group_is_made_again(any_runtime: Runtime) -> None:
    old = store(any_runtime, [A] * 3, n_clusters=2)
    _edit(any_runtime, old, Rename(cluster_id=B, label="later"))
    new = retrain(any_runtime, old, [0] * 3)
    adopt(any_runtime, old, new)
    assert clusters(any_runtime, new)[1] == ("later", True)


def test_what_a_person_placed_stays(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 5 + [B] * 5, "cats", "dogs")
    images = old.images
    _edit(
        any_runtime,
        old,
        Move(image_ids=[images[0]], cluster_id=B),
        Exclude(image_ids=[images[1]]),
        Exclude(image_ids=[images[2]]),
        Undo(),
    )
    with any_runtime.db.write() as session:
        session.add(_review(old, images[9], B, reviewed_by="ben"))
    new = retrain(any_runtime, old, [1] * 5 + [0] * 4 + [1])
    adopt(any_runtime, old, new)
    assert labels(any_runtime, new) == ["dogs", None] + ["cats"] * 3 + ["dogs"] * 5
    with any_runtime.db.read() as session:
        carried = {
            row.image_id: (row.belongs_to, row.reviewed_by)
            for row in session.scalars(
                select(Review).where(Review.clustering_id == new.clustering_id)
            )
        }
    assert carried == {images[0]: (0, None), images[1]: (EXCLUDED, None), images[9]: (0, "ben")}

    third = retrain(any_runtime, new, [0] * 5 + [1] * 4 + [0])  # carried on to the next one
    adopt(any_runtime, new, third)
    assert labels(any_runtime, third) == labels(any_runtime, new)


def test_a_later_edit_of_the_new_clustering_counts_more(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 4 + [B] * 4, "cats", "dogs")
    _edit(any_runtime, old, Move(image_ids=old.images[:1], cluster_id=B))
    _edit(any_runtime, old, Exclude(image_ids=old.images[4:5]))
    new = retrain(any_runtime, old, [1, 0, 0, 0, 0, 1, 1, 1])
    _edit(any_runtime, new, Move(image_ids=old.images[:1], cluster_id=0))
    _edit(any_runtime, new, Move(image_ids=old.images[4:5], cluster_id=1))
    adopt(any_runtime, old, new, {A: "reject", B: "reject"})
    assert labels(any_runtime, new) == ["cats"] * 4 + ["dogs"] * 4


def test_a_refusal_is_carried_over(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 3 + [B] * 3, "cats", "dogs")
    with any_runtime.db.write() as session:
        session.add(_review(old, old.images[0], A, belongs_to=None))
    new = retrain(any_runtime, old, [1] * 3 + [0] * 3)
    adopt(any_runtime, old, new)
    with any_runtime.db.read() as session:
        row = session.get_one(Review, (new.clustering_id, old.images[0]))
    assert (row.cluster_id, row.belongs_to) == (1, None)


def test_one_undo_reverts_all_of_it(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 6 + [B] * 6 + [C] * 3, "cats", "dogs", "owls")
    _edit(any_runtime, old, Exclude(image_ids=old.images[:1]))
    new = retrain(any_runtime, old, [0] * 3 + [2] * 3 + [1] * 6 + [0, 1, 1])
    before = places(any_runtime, new), clusters(any_runtime, new)
    adopt(any_runtime, old, new, {A: "reject"})
    after = places(any_runtime, new), clusters(any_runtime, new)
    edit(any_runtime, new, Undo())
    assert places(any_runtime, new) == before[0]
    assert clusters(any_runtime, new) == before[1] | {3: ("owls", False)}
    edit(any_runtime, new, Redo())
    assert (places(any_runtime, new), clusters(any_runtime, new)) == after


def test_both_revisions_must_be_those_that_were_read(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 3, "cats")
    new = retrain(any_runtime, old, [0] * 3)
    with pytest.raises(RevisionStale):
        adopt(any_runtime, old, new, since_revision=1)
    with pytest.raises(RevisionStale):
        adopt(any_runtime, old, new, revision=2)
    adopt(any_runtime, old, new, revision=1, since_revision=2)


def test_a_change_while_it_is_planned_is_noticed(any_runtime: Runtime) -> None:
    old = _named(any_runtime, [A] * 3, "cats")
    new = retrain(any_runtime, old, [0] * 3)
    plan = plan_adoption(any_runtime.db, TENANT, new.clustering_id, old.clustering_id, {})
    _edit(any_runtime, old, Rename(cluster_id=A, label="kittens"))
    with pytest.raises(RevisionStale), any_runtime.db.write() as session:
        apply_adoption(session, plan, revisions=None, since_revision=None, created_by=None)


def test_the_new_clustering_must_have_all_images(any_runtime: Runtime) -> None:
    new = store(any_runtime, [A] * 3)
    old = retrain(any_runtime, new, [A] * 4)
    assert changes(any_runtime, old, new).missing == 1
    with pytest.raises(NotPredicted, match="lacks 1 images"):
        adopt(any_runtime, old, new)


def test_bad_arguments(any_runtime: Runtime) -> None:
    old = store(any_runtime, [A] * 3)
    other = store(any_runtime, [A] * 3)
    with pytest.raises(InvalidRequest, match="another clustering"):
        changes(any_runtime, old, old)
    with pytest.raises(InvalidRequest, match="another dataset"):
        changes(any_runtime, old, other)
    with pytest.raises(InvalidRequest, match="no cluster 7"):
        adopt(any_runtime, old, retrain(any_runtime, old, [0] * 3), {7: "approve"})


def _review(
    stored: Stored,
    image: str,
    cluster_id: int,
    *,
    belongs_to: int | None = -9,
    reviewed_by: str | None = None,
) -> Review:
    return Review(
        clustering_id=stored.clustering_id,
        image_id=image,
        cluster_id=cluster_id,
        belongs_to=cluster_id if belongs_to == -9 else belongs_to,
        reviewed_by=reviewed_by,
    )
