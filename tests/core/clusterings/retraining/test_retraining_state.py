"""Any history of edits, added photos, retrainings and adoptions: no name is lost without approval,
no image leaves the place that a person gave it, all images are counted, and undo restores.

A person's word about an image is kept in plain Python: the name of the group that it was put into.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

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

from app.core.clusterings.extension import find_targets
from app.core.clusterings.operations import (
    Exclude,
    Merge,
    Move,
    Operation,
    Rename,
    Undo,
    lock_clustering,
)
from app.core.clusterings.operations.editor import ClusteringEditor
from app.core.clusterings.retraining import Changes, apply_adoption, plan_adoption, read_changes
from app.core.clusterings.retraining.pair import Decision
from app.core.clusterings.rows import Assigned
from app.core.platform.settings import Settings
from app.core.platform.tables import EXCLUDED, Cluster, Clustering
from app.core.runtime import Runtime
from tests.core.clustering_rows import (
    TENANT,
    Stored,
    append,
    clusters,
    edit,
    places,
    retrain,
    store,
)

_IMAGES, _CLUSTERS = 12, 4
_Places = st.lists(st.integers(0, _CLUSTERS - 1), min_size=_IMAGES, max_size=_IMAGES)


class Retraining(RuleBasedStateMachine):
    """Names are unique, so that a name is a group. Rules pick by number."""

    runtime: Runtime

    @initialize(where=_Places)
    def begin(self, where: list[int]) -> None:
        self.now: Stored = store(self.runtime, where, n_clusters=_CLUSTERS)
        self.count = 0  # names given
        self.said: dict[str, int] = {}  # image -> the cluster that a person put it into

    def do(self, operation: Operation) -> int:
        return edit(self.runtime, self.now, operation).revision

    def new_name(self) -> str:
        self.count += 1
        return f"name {self.count}"

    def active(self) -> dict[int, str]:
        found = clusters(self.runtime, self.now)
        return {number: label for number, (label, is_active) in found.items() if is_active}

    def named(self) -> dict[int, str]:
        with self.runtime.db.read() as session:
            rows = session.scalars(
                select(Cluster).where(
                    Cluster.clustering_id == self.now.clustering_id, Cluster.active, Cluster.named
                )
            )
            return {row.cluster_id: row.label for row in rows}

    def some_cluster(self, number: int) -> int:
        known = sorted(self.active())
        return known[number % len(known)]

    def some_images(self, numbers: list[int]) -> list[str]:
        images = self.now.images
        return list(dict.fromkeys(images[number % len(images)] for number in numbers))

    @rule(number=st.integers(0, 9))
    def rename(self, number: int) -> None:
        self.do(Rename(cluster_id=self.some_cluster(number), label=self.new_name()))

    @precondition(lambda self: len(self.active()) > 2)
    @rule(number=st.integers(0, 9))
    def merge(self, number: int) -> None:
        known = sorted(self.active())
        chosen = [known[(number + i) % len(known)] for i in range(2)]
        self.do(Merge(cluster_ids=chosen, into=chosen[0]))
        self.said = {i: chosen[0] if c in chosen else c for i, c in self.said.items()}

    @rule(
        numbers=st.lists(st.integers(0, 30), min_size=1, max_size=3),
        into=st.integers(0, 9) | st.none(),
    )
    def move(self, numbers: list[int], into: int | None) -> None:
        ids = self.some_images(numbers)
        before = places(self.runtime, self.now)
        if into is None:
            self.do(Move(image_ids=ids, new_cluster=self.new_name()))
        else:
            self.do(Move(image_ids=ids, cluster_id=self.some_cluster(into)))
        self.note(before)

    @rule(numbers=st.lists(st.integers(0, 30), min_size=1, max_size=2))
    def exclude(self, numbers: list[int]) -> None:
        before = places(self.runtime, self.now)
        self.do(Exclude(image_ids=self.some_images(numbers)))
        self.note(before)

    def note(self, before: dict[str, int]) -> None:
        after = places(self.runtime, self.now)
        self.said |= {image: place for image, place in after.items() if place != before[image]}

    @rule(outputs=st.lists(st.integers(0, _CLUSTERS - 1), min_size=1, max_size=3))
    def add_photos(self, outputs: list[int]) -> None:
        """As a predict job adds them: edits stay, and no photo goes to a cluster that is gone."""
        before = places(self.runtime, self.now)
        names = self.named()
        self.now = append(self.runtime, self.now, len(outputs))
        added = self.now.images[-len(outputs) :]
        with self.runtime.db.write() as session:
            clustering = session.get_one(Clustering, self.now.clustering_id)
            lock_clustering(session, clustering)
            targets = find_targets(session, clustering, _CLUSTERS)
            editor = ClusteringEditor(session, clustering)
            editor.add_images(
                [
                    Assigned(image, targets[output][-1], 0.5, 0.1, 0.5)
                    for image, output in zip(added, outputs, strict=True)
                ]
            )
            editor.finish("extend", {}, created_by=None)
        after = places(self.runtime, self.now)
        assert {image: after[image] for image in before} == before
        assert {after[image] for image in added} <= set(self.active())
        assert self.named() == names

    @rule(
        seed=st.lists(st.integers(0, _CLUSTERS - 1), min_size=1, max_size=24),
        noise=st.sets(st.integers(0, 40), max_size=8),
        extra=st.integers(0, 3),
        chosen=st.dictionaries(st.integers(0, 5), st.sampled_from(["approve", "reject"])),
        undo=st.booleans(),
    )
    def retrain_and_adopt(
        self,
        seed: list[int],
        noise: set[int],
        extra: int,
        chosen: dict[int, Decision],
        undo: bool,
    ) -> None:
        """The new clustering has the old groups by other numbers, some images elsewhere, and more
        photos."""
        old, before = self.now, places(self.runtime, self.now)
        names, groups = self.named(), sorted(self.active())
        where = [
            seed[i % len(seed)]
            if i in noise or i >= len(old.images) or before[old.images[i]] == EXCLUDED
            else (before[old.images[i]] + 1) % _CLUSTERS
            for i in range(len(old.images) + extra)
        ]
        new = retrain(self.runtime, old, where, n_clusters=_CLUSTERS)
        decisions = {groups[n]: choice for n, choice in chosen.items() if n < len(groups)}
        with self.runtime.db.read() as session:
            found = read_changes(session, TENANT, new.clustering_id, old.clustering_id)
        shown = sum(place != EXCLUDED for place in before.values())
        assert sum(group.stayed + group.left for group in found.groups) == shown
        assert (found.images, found.added, found.missing) == (len(old.images), extra, 0)
        initial = places(self.runtime, new)
        plan = plan_adoption(
            self.runtime.db, TENANT, new.clustering_id, old.clustering_id, decisions
        )
        with self.runtime.db.write() as session:
            row = apply_adoption(session, plan, revisions={1}, since_revision=None, created_by=None)
        self.now = new
        after = places(self.runtime, new)

        assert len(after) == len(old.images) + extra
        homes = {group: home for group, home in row.arguments["groups"]}
        kept = set(self.named().values())
        for group, name in names.items():
            if group in row.arguments["ended"]:
                assert decisions[group] == "approve"
                assert (name in kept) != (name in row.arguments["dropped_names"])
            else:
                assert self.named()[homes[group]] == name
        for group in row.arguments["rejected"]:
            mine = {image for image, place in before.items() if place == group}
            here = {image for image in mine if after[image] == homes[group]}
            assert here == mine
        self.check_said(homes, found, after)
        if undo:
            edit(self.runtime, new, Undo())
            assert places(self.runtime, new) == initial
            assert self.named() == {}
            self.said = {}

    def check_said(self, homes: dict[int, int], found: Changes, after: dict[str, int]) -> None:
        into = {
            group.cluster_id: {part.cluster_id for part in group.into} for group in found.groups
        }
        carried: dict[str, int] = {}
        for image, group in self.said.items():
            if group == EXCLUDED:
                assert after[image] == EXCLUDED
            elif group in homes:
                assert after[image] in into[group] | {homes[group]}
            else:
                continue  # the group was approved to end
            carried[image] = after[image]
        self.said = carried

    @invariant()
    def what_a_person_said_holds(self) -> None:
        if "now" in vars(self):
            after = places(self.runtime, self.now)
            assert {image: after[image] for image in self.said} == self.said
            clusters(self.runtime, self.now)  # sizes add up


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
    machine = type("Machine", (Retraining,), {"runtime": runtime})
    limits = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(machine, settings=limits)


def test_any_history_on_sqlite(memory_runtime: Runtime) -> None:
    run(memory_runtime, examples=30, steps=12)


@pytest.mark.parametrize("any_settings", ["postgresql"], indirect=True)
def test_any_history_on_postgresql(any_runtime: Runtime) -> None:
    run(any_runtime, examples=4, steps=8)
