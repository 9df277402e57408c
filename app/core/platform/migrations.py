"""Bring the database to the current tables, and tell whether it is there."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from app.core.platform.db import Database

_SCRIPTS = Path(__file__).parents[3] / "migrations"
_MIGRATION_SECONDS = 24 * 3600.0
_LOCK_MS = 10_000


def upgrade(db: Database, revision: str = "head") -> None:
    with _connection(db) as connection:
        command.upgrade(_config(connection), revision)


def downgrade(db: Database, revision: str) -> None:
    with _connection(db) as connection:
        command.downgrade(_config(connection), revision)


def is_current(db: Database) -> bool:
    with db.engine.connect() as connection:
        return current_revision(connection) == _scripts().get_current_head()


def current_revision(connection: Connection) -> str | None:
    """Of the tables that are there; none if there are none."""
    return MigrationContext.configure(connection).get_current_revision()


def is_ancestor(revision: str) -> bool:
    """Whether the tables of this release came from those of that one, or are the same."""
    return revision in {script.revision for script in _scripts().walk_revisions()}


def _connection(db: Database) -> AbstractContextManager[Connection]:
    return _sqlite(db) if db.engine.dialect.name == "sqlite" else _postgresql(db)


@contextmanager
def _postgresql(db: Database) -> Iterator[Connection]:
    """One upgrade at a time, that may take long but never keeps the service waiting for long.

    A change of a table has to wait for those who use it, and whoever comes then waits behind it:
    it gives up soon, and the upgrade is to be started again.
    """
    url = db.engine.url.render_as_string(hide_password=False)
    patient = Database(url, statement_seconds=_MIGRATION_SECONDS)
    try:
        with patient.engine.connect() as alone, patient.engine.connect() as connection:
            _take_turn(alone)
            connection.execute(text(f"SET lock_timeout = {_LOCK_MS}"))
            connection.commit()
            yield connection
            connection.commit()
    finally:
        patient.dispose()  # which gives the turn back


def _take_turn(connection: Connection) -> None:
    """Asked for again and again: an index that is made while the table is used would wait for
    whoever waits for a lock."""
    wanted = text("SELECT pg_try_advisory_lock(hashtextextended('temi migrations', 0))")
    until = time.monotonic() + _MIGRATION_SECONDS
    while not connection.scalar(wanted):
        connection.commit()
        if time.monotonic() > until:
            raise TimeoutError("another upgrade of the database does not end")
        time.sleep(0.1)
    connection.commit()


@contextmanager
def _sqlite(db: Database) -> Iterator[Connection]:
    """SQLite alters a table by copying and dropping it, and with foreign keys on the drop would
    take the rows of all tables below along."""
    with db.engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.execute("PRAGMA foreign_keys=OFF")  # before the transaction: within it means nothing
        try:
            yield connection
            if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all():
                raise RuntimeError(f"rows that refer to nothing: {broken[:5]}")
            connection.commit()
        finally:
            connection.rollback()
            raw.execute("PRAGMA foreign_keys=ON")


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.attributes["connection"] = connection
    return config
