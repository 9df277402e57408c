from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, event, text

from app.core.clusterings import revisions
from app.core.clusterings.operations import (
    Exclude,
    Merge,
    Move,
    Operation,
    Redo,
    Rename,
    Undo,
    apply_operation,
)
from app.core.clusterings.revisions import (
    LabeledImage,
    LabelFilter,
    iterate_pages,
    open_revision,
)
from app.core.platform.errors import InvalidRequest, NotFound
from app.core.platform.tables import EXCLUDED, Clustering, Image
from app.core.runtime import Runtime
from tests.core.labeled_rows import State, add_images, store_history

LABELS = st.sampled_from(["cats", "dogs", "", "cluster 0", "Ünïcode"])


@st.composite
def histories(draw: st.DrawFn) -> list[State]:
    """Any sequence of states: clusters are added, renamed, deactivated; images are moved."""
    count = draw(st.integers(1, 9))
    clusters = {n: (f"cluster {n}", True) for n in range(draw(st.integers(1, 3)))}
    states = []
    for _ in range(draw(st.integers(1, 6))):
        if draw(st.booleans()):
            clusters = {**clusters, len(clusters): (draw(LABELS), True)}
        changed = draw(st.dictionaries(st.sampled_from(sorted(clusters)), LABELS, max_size=2))
        clusters = clusters | {n: (label, draw(st.booleans())) for n, label in changed.items()}
        anywhere = st.sampled_from([EXCLUDED, *clusters])
        places = draw(st.lists(anywhere, min_size=count, max_size=count))
        states.append(State(tuple(places), clusters))
    return states


def replayed(states: Sequence[State], revision: int) -> list[tuple[int | None, str | None]]:
    state = states[revision - 1]
    return [
        (None, None) if place == EXCLUDED else (place, state.clusters[place][0])
        for place in state.places
    ]


def read(
    runtime: Runtime, clustering: Clustering, revision: int | None = None, **options: Any
) -> list[LabeledImage]:
    """All images that match, in upload order."""
    label_filter = LabelFilter(**options)
    with runtime.db.read() as session:
        view = open_revision(session, clustering, revision)
    return [
        row for page in iterate_pages(runtime.db, view) for row in page if label_filter.keeps(row)
    ]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(states=histories(), size=st.integers(1, 4))
def test_every_revision_can_be_read_later(
    any_runtime: Runtime, states: list[State], size: int
) -> None:
    dataset = add_images(any_runtime, len(states[0].places))
    clustering = store_history(any_runtime, dataset.id, states)
    for revision in range(1, len(states) + 1):
        expected = replayed(states, revision)
        rows = read(any_runtime, clustering, revision, include_excluded=True)
        assert [(row.cluster_id, row.label) for row in rows] == expected
        assert [row.name for row in rows] == [f"image {n}.png" for n in range(len(expected))]
        with any_runtime.db.read() as session:
            view = open_revision(session, clustering, revision)
        assert [row for page in iterate_pages(any_runtime.db, view, size) for row in page] == rows
        active = {n: label for n, (label, on) in states[revision - 1].clusters.items() if on}
        assert view.labels == active
    assert read(any_runtime, clustering, include_excluded=True) == rows


def test_filters(any_runtime: Runtime) -> None:
    dataset = add_images(any_runtime, 6, label=["a", None, "b", None, None, None])
    clusters = {0: ("cats", True), 1: ("dogs", True)}
    places = (0, 1, EXCLUDED, 0, 1, 0)
    clustering = store_history(any_runtime, dataset.id, [State(places, clusters)])

    def names(**options: Any) -> str:
        rows = read(any_runtime, clustering, **options)
        return "".join(row.name.removeprefix("image ")[0] for row in rows)

    assert names() == "01345"
    assert names(include_excluded=True) == "012345"
    assert names(cluster_ids=[0]) == "035"
    assert names(cluster_ids=[]) == ""
    assert names(cluster_ids=[1], include_excluded=True) == "124"
    assert names(min_probability=0.8) == "01"  # 1, 0.917, 0.833, 0.75, ...
    assert names(min_probability=0.8, include_excluded=True) == "012"
    first = read(any_runtime, clustering)[0]
    assert (first.true_label, first.probability, first.attributes) == ("a", 1.0, {})
    assert (first.width, first.height, first.format, first.bytes) == (4, 3, "PNG", 10)


@pytest.mark.parametrize("revision", [0, -1, 3])
def test_an_unknown_revision(any_runtime: Runtime, revision: int) -> None:
    dataset = add_images(any_runtime, 1)
    state = State((0,), {0: ("cats", True)})
    clustering = store_history(any_runtime, dataset.id, [state, state])
    with pytest.raises(InvalidRequest) as caught:
        read(any_runtime, clustering, revision)
    assert [error.field for error in caught.value.errors] == ["revision"]


def test_states_before_real_operations_can_be_read(any_runtime: Runtime) -> None:
    dataset = add_images(any_runtime, 6)
    clusters = {0: ("cats", True), 1: ("dogs", True), 2: ("birds", True)}
    clustering = store_history(any_runtime, dataset.id, [State((0, 1, 2, 0, 1, 2), clusters)])
    ids = [row.image_id for row in read(any_runtime, clustering)]
    steps: list[Operation] = [
        Rename(cluster_id=0, label="lions"),
        Merge(cluster_ids=[0, 1], into=1, label="mammals"),
        Move(image_ids=ids[2:4], new_cluster="odd ones"),
        Exclude(image_ids=ids[4:]),
        Undo(),
        Undo(),
        Undo(),
        Redo(),
        Redo(),
        Undo(),
        Redo(),
        Redo(),
    ]
    seen = [_snapshot(any_runtime, clustering.id)]
    for step in steps:
        with any_runtime.db.write() as session:
            apply_operation(session, "default", clustering.id, step)
        seen.append(_snapshot(any_runtime, clustering.id))
    assert len({str(snapshot) for snapshot in seen}) == 5  # and back again
    with any_runtime.db.read() as session:
        clustering = session.get_one(Clustering, clustering.id)
        for revision, (rows, labels) in enumerate(seen, start=1):
            assert open_revision(session, clustering, revision).labels == labels
            assert read(any_runtime, clustering, revision, include_excluded=True) == rows


def _snapshot(runtime: Runtime, clustering_id: str) -> tuple[list[LabeledImage], dict[int, str]]:
    """The current state."""
    with runtime.db.read() as session:
        clustering = session.get_one(Clustering, clustering_id)
        view = open_revision(session, clustering)
    return read(runtime, clustering, include_excluded=True), view.labels


def test_images_that_came_later_are_not_in_the_clustering(any_runtime: Runtime) -> None:
    dataset = add_images(any_runtime, 5)
    state = State((0, 0, 0), {0: ("cats", True)})
    clustering = store_history(any_runtime, dataset.id, [state])
    assert [row.name[6] for row in read(any_runtime, clustering)] == ["0", "1", "2"]


def test_an_edit_between_two_pages_changes_nothing(
    any_runtime: Runtime,
) -> None:
    dataset = add_images(any_runtime, 4)
    before = State((0, 0, 1, 1), {0: ("cats", True), 1: ("dogs", True)})
    clustering = store_history(any_runtime, dataset.id, [before])
    with any_runtime.db.read() as session:
        view = open_revision(session, clustering)
    pages = iterate_pages(any_runtime.db, view, size=2)
    seen = next(pages)
    with any_runtime.db.write() as session:  # everything goes to cluster 0, which is renamed
        session.execute(text("UPDATE assignments SET cluster_id = 0"))
        session.execute(text("UPDATE clusters SET label = 'pets' WHERE cluster_id = 0"))
        session.execute(
            text(
                "INSERT INTO assignment_changes (clustering_id, image_id, revision, before) "
                "SELECT :clustering, id, 2, 1 FROM images WHERE position >= 2"
            ),
            {"clustering": clustering.id},
        )
    seen += next(pages)
    assert [row.label for row in seen] == ["cats", "cats", "dogs", "dogs"]
    assert list(pages) == []


@pytest.mark.parametrize("table", [Clustering, Image])
def test_a_clustering_deleted_while_it_is_read_raises_an_error(
    any_runtime: Runtime, table: type[Any]
) -> None:
    dataset = add_images(any_runtime, 4)
    clustering = store_history(any_runtime, dataset.id, [State((0, 0, 0, 0), {0: ("cats", True)})])
    with any_runtime.db.read() as session:
        view = open_revision(session, clustering)
    pages = iterate_pages(any_runtime.db, view, size=2)
    next(pages)
    with any_runtime.db.write() as session:
        session.execute(delete(table))
    if table is Clustering:
        with pytest.raises(NotFound):
            list(pages)
    else:
        assert list(pages) == []  # images may go: they have no label then


def test_a_page_is_found_by_indices(any_runtime: Runtime) -> None:
    """A statement reads only the rows of a page, for any size of the tables."""
    dataset = add_images(any_runtime, 3_000)
    clusters = {0: ("cats", True), 1: ("dogs", True)}
    states = [State((place,) * 3_000, clusters) for place in (0, 1)]
    clustering = store_history(any_runtime, dataset.id, states)
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        verb = "EXPLAIN" if connection.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN"
        with closing(connection.connection.cursor()) as other:
            other.execute(f"{verb} {statement}", parameters)
            plans.append("\n".join(str(row) for row in other.fetchall()))

    with any_runtime.db.write() as session:
        session.execute(text("ANALYZE"))
    with any_runtime.db.read() as session:
        view = open_revision(session, clustering, 1)
        event.listen(any_runtime.db.engine, "before_cursor_execute", explain)
        revisions._read_page(session, view, 100, 20)
    assert len(plans) == 1
    assert "Seq Scan" not in plans[0], plans[0]
    assert "SCAN images" not in plans[0], plans[0]
    assert "SCAN assignment" not in plans[0], plans[0]
    assert "ix_images_dataset_id_position" in plans[0]
