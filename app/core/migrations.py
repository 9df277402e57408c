"""Bring the database to the current tables, and tell whether it is there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.core.db import Database

_SCRIPTS = Path(__file__).parents[2] / "migrations"


def upgrade(db: Database, revision: str = "head") -> None:
    with _connection(db) as connection:
        command.upgrade(_config(connection), revision)


def downgrade(db: Database, revision: str) -> None:
    with _connection(db) as connection:
        command.downgrade(_config(connection), revision)


def is_current(db: Database) -> bool:
    with db.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return found == ScriptDirectory.from_config(_config()).get_current_head()


@contextmanager
def _connection(db: Database) -> Iterator[Connection]:
    """One transaction. SQLite alters a table by copying and dropping it, and with foreign keys on
    the drop would take the rows of all tables below along."""
    with db.engine.connect() as connection:
        if db.engine.dialect.name != "sqlite":
            yield connection
            connection.commit()
            return
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


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.attributes["connection"] = connection
    return config
