"""Rows of every table as compressed JSON lines: the same for SQLite and PostgreSQL."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import zstandard
from sqlalchemy import JSON, Column, MetaData, Table, func, insert, select
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Session

from app.core.platform.errors import BackupInvalid
from app.core.platform.tables import Base

FOLDER = "tables/"
# These speak of processes that run now and of files that grow: elsewhere they would be wrong.
_LEFT_OUT = {"workers", "shards", "retention_locks", "uploads"}
_ROWS = 10_000  # in one member, and in memory
_MEMBER_BYTES = 1024**3
# Nothing is written as NULL, not as JSON's own null.
_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def tables() -> list[Table]:
    """Those that travel; one that refers to another comes after it."""
    return [table for table in Base.metadata.sorted_tables if table.name not in _LEFT_OUT]


def dump_rows(session: Session, add: Callable[[str, bytes], None]) -> dict[str, int]:
    """Every row, a member for some thousands; returns how many each table has."""
    return {table.name: _dump_table(session, table, add) for table in tables()}


def _dump_table(session: Session, table: Table, add: Callable[[str, bytes], None]) -> int:
    columns = [column.name for column in table.columns]
    found = session.execute(select(table).execution_options(yield_per=_ROWS))
    count = 0
    for number, page in enumerate(found.partitions()):
        lines = [columns, *(list(row) for row in page)]
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        add(
            f"{FOLDER}{table.name}/{number:08d}.jsonl.zst",
            zstandard.ZstdCompressor().compress(text.encode()),
        )
        count += len(page)
    return count


def table_of(member: str) -> str | None:
    """The table that a member of an archive belongs to."""
    return member.split("/")[1] if member.startswith(FOLDER) else None


def load_rows(session: Session, table: str, data: bytes) -> int:
    text = zstandard.ZstdDecompressor().decompress(data, max_output_size=_MEMBER_BYTES)
    columns, *rows = (json.loads(line) for line in text.decode().split("\n") if line)
    values = [dict(zip(columns, row, strict=True)) for row in rows]
    session.execute(insert(_shape(table, columns)), values)
    return len(rows)


def is_empty(session: Session) -> bool:
    return all(session.execute(select(table).limit(1)).first() is None for table in tables())


def count_rows(session: Session, table: str) -> int:
    return session.scalar(select(func.count()).select_from(Base.metadata.tables[table])) or 0


def check_known(names: Sequence[str]) -> None:
    if unknown := sorted(set(names) - {table.name for table in tables()}):
        raise BackupInvalid(
            f"The backup has tables that this release does not know: {', '.join(unknown)}."
        )


def _shape(name: str, columns: Sequence[str]) -> Table:
    """The table with these columns only: those that came later get what the database gives."""
    table = Base.metadata.tables[name]
    if unknown := sorted(set(columns) - set(table.columns.keys())):
        raise BackupInvalid(
            f"The backup has columns that this release does not know: {name}.{', '.join(unknown)}."
        )
    return Table(
        name,
        MetaData(),
        *(Column(column, _type(table.columns[column])) for column in columns),
    )


def _type(column: "Column[Any]") -> Any:
    return _JSON if isinstance(column.type, JSON) else column.type
