"""Aliases are set, rolled back and removed, and every change is recorded."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from app.core.models import registry
from app.core.models.deletion import delete_version
from app.core.platform.errors import InvalidRequest, NotFound, NothingToRollBack
from app.core.platform.tables import ModelAliasChange
from app.core.runtime import Runtime
from tests.core.models.rows import add, changes, point, roll_back

THREADS = 8


def _where(runtime: Runtime, alias: str = "live") -> int:
    with runtime.db.read() as session:
        return registry.resolve(session, "t", f"cats@{alias}")[1].version


@pytest.fixture(autouse=True)
def _four_versions(any_runtime: Runtime) -> None:
    for _ in range(4):
        add(any_runtime, None)


def test_an_alias_is_set_moved_and_removed(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2)
    point(any_runtime, "old", 1)
    with any_runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats", lock=True)
        assert registry.aliases(session, model) == {"latest": 4, "live": 2, "old": 1}
        registry.remove_alias(session, model, "old")
    assert _where(any_runtime) == 2
    with any_runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats", lock=True)
        with pytest.raises(NotFound, match="old"):
            registry.resolve(session, "t", "cats@old")
        with pytest.raises(NotFound, match="old"):
            registry.remove_alias(session, model, "old")


def test_every_change_is_recorded(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 3, by="anna")
    point(any_runtime, "old", 1)
    roll_back(any_runtime, "live", by="bert")
    with any_runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats", lock=True)
        registry.remove_alias(session, model, "old", changed_by="anna")
    assert changes(any_runtime) == [
        (1, "live", "set", None, 1),
        (2, "live", "set", 1, 3),
        (3, "old", "set", None, 1),
        (4, "live", "rollback", 3, 1),
        (5, "old", "remove", 1, None),
    ]
    with any_runtime.db.read() as session:
        model = registry.get_model(session, "t", "cats")
        rows = session.scalars(registry.alias_changes(session, model, "live")).all()
        assert [row.changed_by for row in sorted(rows, key=lambda row: row.number)] == [
            *("anna", "anna", "bert"),
        ]
        assert len(session.scalars(registry.alias_changes(session, model, "old")).all()) == 2
        with pytest.raises(NotFound, match="never"):
            registry.alias_changes(session, model, "never")


def test_setting_an_alias_to_the_same_version_is_not_recorded(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 1, 2, 2)
    assert [change[3:] for change in changes(any_runtime)] == [(None, 1), (1, 2)]
    assert roll_back(any_runtime, "live") == 1


def test_each_rollback_goes_back_one_version(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2, 3)
    assert [roll_back(any_runtime, "live") for _ in range(2)] == [2, 1]
    with pytest.raises(NothingToRollBack, match="points to version 1"):
        roll_back(any_runtime, "live")
    assert _where(any_runtime) == 1


def test_a_change_after_a_rollback_is_rolled_back_first(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2, 3)
    assert roll_back(any_runtime, "live") == 2
    point(any_runtime, "live", 4)
    assert [roll_back(any_runtime, "live") for _ in range(2)] == [2, 1]


def test_aliases_are_rolled_back_independently(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2)
    point(any_runtime, "other", 3, 4)
    assert roll_back(any_runtime, "live") == 1
    assert _where(any_runtime, "other") == 4
    assert roll_back(any_runtime, "other") == 3


def test_deleted_versions_are_skipped(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2, 3, 4)
    with any_runtime.db.write() as session:
        delete_version(session, "t", "cats", 3)
    assert roll_back(any_runtime, "live") == 2
    with any_runtime.db.write() as session:
        delete_version(session, "t", "cats", 1)
    with pytest.raises(NothingToRollBack):
        roll_back(any_runtime, "live")


def test_a_rollback_always_changes_the_version(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 4, 2, 1, 2)
    with any_runtime.db.write() as session:
        delete_version(session, "t", "cats", 1)
    assert roll_back(any_runtime, "live") == 4


def test_a_removed_alias_has_no_history_to_roll_back(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2)
    with any_runtime.db.write() as session:
        registry.remove_alias(session, registry.get_model(session, "t", "cats", lock=True), "live")
    with pytest.raises(NotFound):
        roll_back(any_runtime, "live")
    point(any_runtime, "live", 3)
    with pytest.raises(NothingToRollBack):
        roll_back(any_runtime, "live")


def test_concurrent_changes_are_all_recorded(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1)

    def move(number: int) -> None:
        point(any_runtime, f"alias{number}", 1 + number % 4)
        point(any_runtime, "live", 1 + number % 4)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(move, range(THREADS)))
    found = changes(any_runtime)
    assert [change[0] for change in found] == list(range(1, len(found) + 1))
    moves = [change[3:] for change in found if change[1] == "live"]
    assert [before for before, _ in moves[1:]] == [version for _, version in moves[:-1]]
    assert _where(any_runtime) == moves[-1][1]


def test_concurrent_rollbacks_go_back_one_version_each(any_runtime: Runtime) -> None:
    point(any_runtime, "live", 1, 2, 3, 4)
    with ThreadPoolExecutor(3) as pool:
        targets = list(pool.map(lambda _: roll_back(any_runtime, "live"), range(3)))
    assert sorted(targets) == [1, 2, 3]
    assert _where(any_runtime) == 1


@pytest.mark.parametrize("alias", ["latest", "", "Upper", "1st", "a" * 65, "a b", "a\n"])
def test_aliases_that_are_refused(any_runtime: Runtime, alias: str) -> None:
    with any_runtime.db.write() as session:
        model = registry.get_model(session, "t", "cats", lock=True)
        with pytest.raises(InvalidRequest):
            registry.set_alias(session, model, alias, 1)
        with pytest.raises(NotFound):
            registry.set_alias(session, model, "fine", 9)
        assert session.get(ModelAliasChange, (model.id, 1)) is None
