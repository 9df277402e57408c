"""Bring the database to the current tables, and tell whether it is there."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from app.core.db import Database

_SCRIPTS = Path(__file__).parents[2] / "migrations"


def upgrade(db: Database, revision: str = "head") -> None:
    with db.engine.connect() as connection:
        command.upgrade(_config(connection), revision)
        connection.commit()


def downgrade(db: Database, revision: str) -> None:
    with db.engine.connect() as connection:
        command.downgrade(_config(connection), revision)
        connection.commit()


def is_current(db: Database) -> bool:
    with db.engine.connect() as connection:
        found = MigrationContext.configure(connection).get_current_revision()
    return found == ScriptDirectory.from_config(_config()).get_current_head()


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS))
    config.attributes["connection"] = connection
    return config
