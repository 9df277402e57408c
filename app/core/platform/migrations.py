"""Upgrades the tables of the database, and tells whether they are current.

Alembic is imported only where there is something to upgrade: each start of the service asks.
"""

import re
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from app.core.platform.db import Database
from app.core.platform.errors import DatabaseNewer

if TYPE_CHECKING:
    from alembic.config import Config

_SCRIPTS = Path(__file__).parents[3] / "migrations"
_MIGRATION_SECONDS = 24 * 3600.0
_LOCK_MS = 10_000
_REVISION = re.compile(r'^(down_)?revision = "(\w+)"$', re.MULTILINE)


def upgrade(db: Database, revision: str = "head") -> None:
    """Raises DatabaseNewer if a later release has upgraded the tables."""
    if revision == "head" and is_current(db):
        return
    from alembic import command

    with _connection(db) as connection:
        found = current_revision(connection)
        if found is not None and not is_ancestor(found):
            raise DatabaseNewer(
                f"The tables of the database have revision {found}, which this release does not "
                "know: a later one has upgraded them. Install that release, or restore a backup "
                "that was made before into an empty database."
            )
        command.upgrade(_config(connection), revision)


def downgrade(db: Database, revision: str) -> None:
    from alembic import command

    with _connection(db) as connection:
        command.downgrade(_config(connection), revision)


def is_current(db: Database) -> bool:
    with db.engine.connect() as connection:
        return current_revision(connection) == _head()


def current_revision(connection: Connection) -> str | None:
    """The revision of the tables; None in an empty database."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return found


def is_ancestor(revision: str) -> bool:
    """Whether this release has, or can upgrade from, this revision."""
    return revision in _revisions()[0]


def _head() -> str:
    revisions, parents = _revisions()
    (head,) = revisions - parents
    return head


@cache
def _revisions() -> tuple[set[str], set[str]]:
    """The revisions of all scripts, and those that another one follows."""
    lines = [
        line
        for script in (_SCRIPTS / "versions").glob("*.py")
        for line in _REVISION.findall(script.read_text())
    ]
    return {name for down, name in lines if not down}, {name for down, name in lines if down}


def _connection(db: Database) -> AbstractContextManager[Connection]:
    return _sqlite(db) if db.engine.dialect.name == "sqlite" else _postgresql(db)


@contextmanager
def _postgresql(db: Database) -> Iterator[Connection]:
    """A connection for one upgrade at a time, with a long statement and a short lock timeout.

    ALTER TABLE waits for transactions on the table, and new ones queue behind it. It therefore
    fails soon, and the upgrade has to be started again.
    """
    url = db.engine.url.render_as_string(hide_password=False)
    upgrading = Database(url, statement_seconds=_MIGRATION_SECONDS)
    try:
        with upgrading.engine.connect() as lock, upgrading.engine.connect() as connection:
            _acquire_lock(lock)
            connection.execute(text(f"SET lock_timeout = {_LOCK_MS}"))
            connection.commit()
            yield connection
            connection.commit()
    finally:
        upgrading.dispose()  # releases the lock


def _acquire_lock(connection: Connection) -> None:
    """Polls: CREATE INDEX CONCURRENTLY would wait for a transaction that waits for the lock."""
    acquire = text("SELECT pg_try_advisory_lock(hashtextextended('temi migrations', 0))")
    until = time.monotonic() + _MIGRATION_SECONDS
    while not connection.scalar(acquire):
        connection.commit()
        if time.monotonic() > until:
            raise TimeoutError("another upgrade of the database is still running")
        time.sleep(0.1)
    connection.commit()


@contextmanager
def _sqlite(db: Database) -> Iterator[Connection]:
    """SQLite alters a table by copying and dropping it. With foreign keys on, the drop would
    delete the rows of all tables that refer to it."""
    with db.engine.connect() as connection:
        raw = connection.connection.dbapi_connection
        assert raw is not None
        raw.execute("PRAGMA foreign_keys=OFF")  # it has no effect within a transaction
        try:
            yield connection
            if broken := connection.exec_driver_sql("PRAGMA foreign_key_check").all():
                raise RuntimeError(f"rows with broken foreign keys: {broken[:5]}")
            connection.commit()
        finally:
            connection.rollback()
            raw.execute("PRAGMA foreign_keys=ON")


def _config(connection: Connection) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.attributes["connection"] = connection
    return config
