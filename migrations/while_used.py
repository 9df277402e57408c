"""Indexes that are made and dropped while the table is written to."""

from collections.abc import Sequence
from typing import Any

from alembic import op


def create_index(name: str, table: str, columns: Sequence[Any]) -> None:
    """PostgreSQL takes longer this way and closes nothing; one cut short is made anew."""
    if op.get_context().dialect.name != "postgresql":
        op.create_index(op.f(name), table, list(columns), if_not_exists=True)
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")  # it waits for readers, and nobody waits for it
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        op.create_index(op.f(name), table, list(columns), postgresql_concurrently=True)


def drop_index(name: str, table: str) -> None:
    if op.get_context().dialect.name != "postgresql":
        op.drop_index(op.f(name), table, if_exists=True)
        return
    with op.get_context().autocommit_block():
        op.execute("SET lock_timeout = 0")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
