"""Migrations run while the previous release runs: they only add, and do not block it."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from alembic.migration import MigrationContext
from alembic.operations import Operations
from alembic.script import ScriptDirectory
from sqlalchemy import (
    JSON,
    Boolean,
    Engine,
    Float,
    Integer,
    MetaData,
    Table,
    delete,
    event,
    insert,
    inspect,
    select,
    update,
)

from app.core.platform import migrations
from app.core.platform.db import Database
from migrations.concurrent_indexes import create_index, drop_index
from tests.core.migration_rules import Schema, Shape, breaks, is_contract, long_locks, schema

_RELEASED = "0001"  # the tables of the first release


def _scripts() -> list[Any]:
    """All migrations that the rules apply to."""
    found = ScriptDirectory(str(migrations._SCRIPTS)).walk_revisions()
    return [script for script in reversed(list(found)) if script.revision > _RELEASED]


@pytest.fixture(params=["sqlite", "postgresql"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        url = request.getfixturevalue("empty_postgres_url")
    database = Database(url)
    yield database
    database.dispose()


def test_every_migration_only_adds(db: Database) -> None:
    migrations.upgrade(db, _RELEASED)
    before = schema(db.engine)
    for script in _scripts():
        migrations.upgrade(db, script.revision)
        after = schema(db.engine)
        if not is_contract(script.module):
            assert breaks(before, after) == [], script.revision
        before = after


def test_no_migration_locks_a_table_of_postgresql_for_long(empty_postgres_url: str) -> None:
    db = Database(empty_postgres_url)
    migrations.upgrade(db, _RELEASED)
    before = schema(db.engine)
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    for script in _scripts():
        event.listen(Engine, "before_cursor_execute", note)
        try:
            migrations.upgrade(db, script.revision)
        finally:
            event.remove(Engine, "before_cursor_execute", note)
        assert long_locks(statements, before) == [], script.revision
        assert any("alembic_version" in statement for statement in statements)
        statements.clear()
        before = schema(db.engine)
    db.dispose()


def test_an_index_is_created_without_blocking_writes(db: Database) -> None:
    migrations.upgrade(db)
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        statements.append(statement)

    with db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"transaction_per_migration": True})
        event.listen(Engine, "before_cursor_execute", note)
        try:
            with Operations.context(context):
                for _ in range(2):  # an interrupted one is created again
                    create_index("ix_jobs_worker", "jobs", ["worker"])
                connection.commit()
                assert "ix_jobs_worker" in _indexes(db)
                drop_index("ix_jobs_worker", "jobs")
                connection.commit()
        finally:
            event.remove(Engine, "before_cursor_execute", note)
    assert "ix_jobs_worker" not in _indexes(db)
    if db.engine.dialect.name == "postgresql":
        assert long_locks(statements, schema(db.engine)) == []


def _indexes(db: Database) -> set[str | None]:
    return {index["name"] for index in inspect(db.engine).get_indexes("jobs")}


def test_code_of_the_previous_release_keeps_working(db: Database) -> None:
    """With the previous tables it reads, writes, changes and deletes rows."""
    migrations.upgrade(db, _RELEASED)
    old = MetaData()
    old.reflect(db.engine)
    tables = [table for table in old.sorted_tables if table.name != "alembic_version"]
    with db.write() as session:
        for table in tables:
            session.execute(insert(table), _row(table, 1))
    migrations.upgrade(db)
    with db.write() as session:
        for table in tables:
            session.execute(insert(table), _row(table, 2))
        for table in tables:
            found = session.execute(select(table)).all()
            assert sorted(map(repr, found)) == sorted(map(repr, _rows(table))), table.name
            session.execute(update(table).values(_row(table, 2)).where(_is(table, 2)))
        for table in reversed(tables):
            session.execute(delete(table).where(_is(table, 2)))


def _row(table: Table, number: int) -> dict[str, Any]:
    """The same value in every column of a type, so that foreign keys match."""
    return {column.name: _value(column.type, number) for column in table.columns}


def _rows(table: Table) -> list[tuple[Any, ...]]:
    return [tuple(_row(table, number).values()) for number in (1, 2)]


def _is(table: Table, number: int) -> Any:
    key = next(iter(table.primary_key.columns))
    return key == _value(key.type, number)


def _value(type_: Any, number: int) -> Any:
    for kind, value in ((Boolean, True), (Integer, number), (Float, float(number)), (JSON, {})):
        if isinstance(type_, kind):
            return value
    return f"v{number}"


_TABLE = Shape(
    columns={"id": ("TEXT", False, False), "note": ("TEXT", True, False)},
    unique=frozenset(),
    references=frozenset(),
    checks=frozenset(),
)


def _with(**columns: tuple[str, bool, bool]) -> Schema:
    return {"t": replace(_TABLE, columns=_TABLE.columns | columns)}


@pytest.mark.parametrize(
    ("after", "problem"),
    [
        ({}, "table t is missing"),
        ({"t": replace(_TABLE, columns={"id": ("TEXT", False, False)})}, "column note is missing"),
        (_with(more=("TEXT", False, False)), "more is new and must be given"),
        (_with(note=("TEXT", False, False)), "note may no longer be null"),
        (_with(note=("INTEGER", True, False)), "note has become INTEGER"),
        ({"t": replace(_TABLE, unique=frozenset({("note",)}))}, "must be unique"),
        ({"t": replace(_TABLE, references=frozenset({("note",)}))}, "must refer"),
        ({"t": replace(_TABLE, checks=frozenset({"note > 1"}))}, "note > 1 must hold"),
    ],
)
def test_changes_that_break_older_code_are_found(after: Schema, problem: str) -> None:
    (found,) = breaks({"t": _TABLE}, after)
    assert problem in found


def test_additions_are_allowed() -> None:
    after = _with(more=("TEXT", True, False), most=("TEXT", False, True))
    assert breaks({"t": _TABLE}, after | {"new": _TABLE}) == []


def test_statements_that_lock_a_table_are_found() -> None:
    before = {"t": _TABLE}
    assert long_locks(["CREATE INDEX ix ON t (a)"], before)
    assert long_locks(["CREATE UNIQUE INDEX ix ON t (a)"], before)
    assert long_locks(["ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1)"], before)
    assert not long_locks(["CREATE INDEX CONCURRENTLY ix ON t (a)"], before)
    assert not long_locks(["CREATE INDEX ix ON fresh (a)"], before)
    assert not long_locks(["ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1) NOT VALID"], before)


def test_a_contract_names_its_release() -> None:
    assert is_contract(SimpleNamespace(CONTRACTS="0.3"))  # type: ignore[arg-type]
    assert not is_contract(SimpleNamespace(CONTRACTS=""))  # type: ignore[arg-type]
    assert not is_contract(SimpleNamespace())  # type: ignore[arg-type]
