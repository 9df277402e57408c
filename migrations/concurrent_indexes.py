"""Creates and drops indexes without blocking writes to the table."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from alembic import op
from sqlalchemy import text


def create_index(name: str, table: str, columns: Sequence[Any]) -> None:
    """In PostgreSQL concurrently: slower, without locks; an interrupted one is created again."""
    if op.get_context().dialect.name != "postgresql":
        op.create_index(op.f(name), table, list(columns), if_not_exists=True)
        return
    with _without_lock_timeout():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.create_index(op.f(name), table, list(columns), postgresql_concurrently=True)


def drop_index(name: str, table: str) -> None:
    if op.get_context().dialect.name != "postgresql":
        op.drop_index(op.f(name), table, if_exists=True)
        return
    with _without_lock_timeout():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


@contextmanager
def _without_lock_timeout() -> Iterator[None]:
    """Concurrent statements wait for readers, and block no others."""
    with op.get_context().autocommit_block():
        before = op.get_bind().scalar(text("SHOW lock_timeout"))
        op.execute("SET lock_timeout = 0")
        yield
        op.execute(f"SET lock_timeout = '{before}'")
