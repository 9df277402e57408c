"""Migrations create the tables of the code on both databases, and can be downgraded."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect, text

from app.core.platform.db import Database
from app.core.platform.errors import DatabaseNewer
from app.core.platform.migrations import current_revision, downgrade, is_current, upgrade
from app.core.platform.tables import Base


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database without tables."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'empty.db'}"
    else:
        url = request.getfixturevalue("empty_postgres_url")
    db = Database(url)
    yield db
    db.dispose()


def _tables(db: Database) -> set[str]:
    return set(inspect(db.engine).get_table_names())


def _differences(db: Database) -> list[object]:
    with db.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, Base.metadata))


def test_tables_of_a_later_release_are_not_touched(empty: Database) -> None:
    upgrade(empty)
    with empty.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(DatabaseNewer, match="9999"):
        upgrade(empty)

    with empty.engine.connect() as connection:
        assert current_revision(connection) == "9999"


def test_upgrade_gives_the_tables(empty: Database) -> None:
    assert not is_current(empty)
    upgrade(empty)
    assert is_current(empty)
    assert _tables(empty) == set(Base.metadata.tables) | {"alembic_version"}
    assert _differences(empty) == []


def test_upgrading_twice_changes_nothing(empty: Database) -> None:
    upgrade(empty)
    upgrade(empty)
    assert is_current(empty)


def test_upgrade_downgrade_upgrade(empty: Database) -> None:
    upgrade(empty)
    downgrade(empty, "base")
    assert _tables(empty) <= {"alembic_version"}
    assert not is_current(empty)
    upgrade(empty)
    assert _differences(empty) == []
