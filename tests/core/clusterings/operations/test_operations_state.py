"""Any sequence of operations: no image is lost, all can be undone, every revision can be read.

A model in plain Python keeps a picture of the clustering at each revision. The database has to
agree with it after each step, and must give each picture back from what it has noted.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from sqlalchemy import select

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
)
from app.core.clusterings.queries import read_with_history
from app.core.datasets.changes import delete_images
from app.core.datasets.rows import get_dataset
from app.core.platform.errors import NothingToRedo, NothingToUndo
from app.core.platform.settings import Settings
from app.core.platform.tables import EXCLUDED, AssignmentChange, Clustering, ClusteringOperation
from app.core.runtime import Runtime
from tests.core.clustering_rows import TENANT, Stored, clusters, edit, places, save_features, store

_IMAGES, _CLUSTERS = 12, 3
_LABELS = st.sampled_from(["a", "b", "Katzen", "ねこ"])


class Picture(NamedTuple):
    """The cluster of each image, and the names of active clusters."""

    places: dict[str, int]
    labels: dict[int, str]


class Editing(RuleBasedStateMachine):
    """Rules pick by number, so that a failing example stays short."""

    runtime: Runtime

    @initialize(spread=st.integers(1, _CLUSTERS), seed=st.integers(0, 3))
    def begin(self, spread: int, seed: int) -> None:
        where = [position % spread for position in range(_IMAGES)]
        self.stored: Stored = store(self.runtime, where, n_clusters=_CLUSTERS)
        features = np.random.default_rng(seed).normal(size=(_IMAGES, 4)).astype(np.float32)
        save_features(self.runtime, features, list(range(_IMAGES)))
        self.now = self.picture()
        self.history = [self.now]  # revision 1, 2, ...
        self.done: list[int] = []  # revisions of the operations that hold
        self.undone: list[int] = []  # of those that can be done again, the next one last

    def picture(self) -> Picture:
        found = clusters(self.runtime, self.stored)
        labels = {number: label for number, (label, active) in found.items() if active}
        return Picture(places(self.runtime, self.stored), labels)

    def do(self, operation: Operation) -> ClusteringOperation:
        row = edit(self.runtime, self.stored, operation, revision=len(self.history))
        assert row.revision == len(self.history) + 1
        self.now = self.picture()
        self.history.append(self.now)
        if not isinstance(operation, Undo | Redo):
            self.done.append(row.revision)
            self.undone.clear()
        return row

    def some_images(self, numbers: list[int]) -> list[str]:
        ids = list(self.now.places)
        return [ids[number % len(ids)] for number in numbers]

    def some_cluster(self, number: int) -> int:
        return list(self.now.labels)[number % len(self.now.labels)]

    @rule(number=st.integers(0, 9), label=_LABELS)
    def rename(self, number: int, label: str) -> None:
        before, target = self.now, self.some_cluster(number)
        self.do(Rename(cluster_id=target, label=label))
        assert self.now == Picture(before.places, before.labels | {target: label})

    @precondition(lambda self: len(self.now.labels) > 1)
    @rule(number=st.integers(0, 9), count=st.integers(2, 4), label=st.none() | _LABELS)
    def merge(self, number: int, count: int, label: str | None) -> None:
        before = self.now
        ordered = sorted(before.labels)
        chosen = [ordered[(number + i) % len(ordered)] for i in range(min(count, len(ordered)))]
        into = self.do(Merge(cluster_ids=chosen, label=label)).arguments["into"]
        where = {i: into if c in chosen else c for i, c in before.places.items()}
        labels = {c: n for c, n in before.labels.items() if c == into or c not in chosen}
        assert self.now == Picture(where, labels | ({into: label} if label else {}))

    @precondition(lambda self: any(self.members(number) > 1 for number in self.now.labels))
    @rule(parts=st.integers(2, 3), seed=st.integers(0, 2))
    def split(self, parts: int, seed: int) -> None:
        before = self.now
        target = max(before.labels, key=self.members)
        parts = min(parts, self.members(target))
        row = self.do(Split(cluster_id=target, parts=parts, seed=seed))
        new = self.now.labels.keys() - before.labels.keys()
        assert len(new) == parts - 1
        moved = {i for i, c in self.now.places.items() if c != before.places[i]}
        assert row.moved == len(moved)
        assert all(before.places[i] == target and self.now.places[i] in new for i in moved)
        assert self.members(target) >= max(self.members(number) for number in new) >= 1

    @precondition(lambda self: self.now.places)
    @rule(
        numbers=st.lists(st.integers(0, 20), min_size=1, max_size=6),
        into=st.integers(0, 9) | _LABELS,
    )
    def move(self, numbers: list[int], into: int | str) -> None:
        before, ids = self.now, self.some_images(numbers)
        if isinstance(into, str):
            to = self.stored_clustering().next_cluster_id
            self.do(Move(image_ids=ids, new_cluster=into))
            labels = before.labels | {to: into}
        else:
            to, labels = self.some_cluster(into), before.labels
            self.do(Move(image_ids=ids, cluster_id=to))
        assert self.now == Picture(before.places | dict.fromkeys(ids, to), labels)

    @precondition(lambda self: self.now.places)
    @rule(numbers=st.lists(st.integers(0, 20), min_size=1, max_size=4))
    def exclude(self, numbers: list[int]) -> None:
        before, ids = self.now, self.some_images(numbers)
        self.do(Exclude(image_ids=ids))
        assert self.now == Picture(before.places | dict.fromkeys(ids, EXCLUDED), before.labels)

    @rule(number=st.integers(0, 9), limit=st.sampled_from([0.35, 0.6, 0.95]))
    def exclude_a_selection(self, number: int, limit: float) -> None:
        before, target = self.now, self.some_cluster(number)
        row = self.do(Exclude(selection=Selection(cluster_id=target, max_probability=limit)))
        moved = {i for i, c in self.now.places.items() if c != before.places[i]}
        assert row.moved == len(moved)
        assert all(before.places[i] == target for i in moved)
        assert self.now == Picture(before.places | dict.fromkeys(moved, EXCLUDED), before.labels)

    @rule()
    def undo(self) -> None:
        if not self.done:
            with pytest.raises(NothingToUndo):
                edit(self.runtime, self.stored, Undo(), revision=len(self.history))
            return
        undone = self.done.pop()
        assert self.do(Undo()).undoes == undone
        assert self.now == self.history[undone - 2]
        self.undone.append(undone)

    @rule()
    def redo(self) -> None:
        if not self.undone:
            with pytest.raises(NothingToRedo):
                edit(self.runtime, self.stored, Redo(), revision=len(self.history))
            return
        again = self.undone.pop()
        assert self.do(Redo()).arguments == {"revision": again}
        assert self.now == self.history[again - 1]
        self.done.append(again)

    @precondition(lambda self: len(self.now.places) > 2)
    @rule(number=st.integers(0, 20))
    def delete_an_image(self, number: int) -> None:
        """It is deleted from all revisions, too."""
        (deleted,) = self.some_images([number])
        with self.runtime.db.write() as session:
            dataset = get_dataset(session, TENANT, self.stored.dataset_id, lock=True)
            delete_images(session, dataset, [deleted])
        for picture in self.history:
            picture.places.pop(deleted, None)
        self.now = self.picture()
        assert self.now == self.history[-1]

    @invariant()
    def every_revision_can_be_found(self) -> None:
        if "now" in vars(self):
            assert [self.at(number + 1) for number in range(len(self.history))] == self.history

    @invariant()
    def the_next_undo_and_redo_are_known(self) -> None:
        if "now" in vars(self):
            with self.runtime.db.read() as session:
                _, undo, redo = read_with_history(session, TENANT, self.stored.clustering_id)
            assert undo == (self.done[-1] if self.done else None)
            assert redo == (self.undone[-1] if self.undone else None)

    def teardown(self) -> None:
        if "now" not in vars(self) or self.stored_clustering().revision != len(self.history):
            return  # a step has failed, and its own error is the one to be seen
        self.check_replay()
        last, count = self.now, len(self.done)
        for _ in range(count):
            self.undo()
        assert self.now == self.history[0]
        for _ in range(count):
            self.redo()
        assert self.now == last

    def check_replay(self) -> None:
        """Replays the history: the recorded state before each step equals the replayed one."""
        operations, changes = self.log()
        where = dict(self.history[0].places)
        for operation in operations:
            mine = [c for c in changes if c.revision == operation.revision]
            assert operation.moved >= len(mine)  # more if images were deleted since
            for change in mine:
                assert where[change.image_id] == change.before
                where[change.image_id] = self.destination(operation, change, changes)
        assert where == self.now.places

    def destination(
        self,
        operation: ClusteringOperation,
        change: AssignmentChange,
        changes: list[AssignmentChange],
    ) -> int:
        arguments: dict[str, Any] = operation.arguments
        if operation.kind == "exclude":
            return EXCLUDED
        if operation.kind in ("merge", "move"):
            return int(arguments["into" if operation.kind == "merge" else "cluster_id"])
        if operation.kind in ("undo", "redo"):
            (undone,) = (
                c.before
                for c in changes
                if (c.image_id, c.revision) == (change.image_id, operation.undoes)
            )
            return undone
        assert operation.kind == "split"
        return self.history[operation.revision - 1].places[change.image_id]

    def at(self, revision: int) -> Picture:
        """The state by the recorded changes alone: the first later change decides."""
        operations, changes = self.log()
        where = dict(self.now.places)
        for change in reversed([c for c in changes if c.revision > revision]):
            where[change.image_id] = change.before
        found = clusters(self.runtime, self.stored)
        for operation in reversed([o for o in operations if o.revision > revision]):
            for number, was in operation.clusters_before.items():
                found[int(number)] = (was["label"], was["active"])
        return Picture(where, {n: label for n, (label, active) in found.items() if active})

    def log(self) -> tuple[list[ClusteringOperation], list[AssignmentChange]]:
        mine = self.stored.clustering_id
        with self.runtime.db.read() as session:
            operations = select(ClusteringOperation).where(
                ClusteringOperation.clustering_id == mine
            )
            changes = select(AssignmentChange).where(AssignmentChange.clustering_id == mine)
            return (
                list(session.scalars(operations.order_by(ClusteringOperation.revision))),
                list(session.scalars(changes.order_by(AssignmentChange.revision))),
            )

    def members(self, cluster_id: int) -> int:
        return sum(place == cluster_id for place in self.now.places.values())

    def stored_clustering(self) -> Clustering:
        with self.runtime.db.read() as session:
            return session.get_one(Clustering, self.stored.clustering_id)


@pytest.fixture
def memory_runtime(sqlite_template: Path) -> Iterator[Runtime]:
    """In memory where possible: each step commits, and a disk would have to sync."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        shutil.copy(sqlite_template, Path(folder) / "temi.db")
        runtime = Runtime(Settings(_env_file=None, data_dir=Path(folder)))
        yield runtime
        runtime.db.dispose()


def run(runtime: Runtime, *, examples: int, steps: int) -> None:
    machine = type("Machine", (Editing,), {"runtime": runtime})
    limits = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


def test_any_operations_on_sqlite(memory_runtime: Runtime) -> None:
    run(memory_runtime, examples=20, steps=12)


@pytest.mark.parametrize("any_settings", ["postgresql"], indirect=True)
def test_any_operations_on_postgresql(any_runtime: Runtime) -> None:
    run(any_runtime, examples=5, steps=10)
