"""Dumps and loads the rows of every table as compressed JSON lines, for any database."""

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
# Rows of running processes and unfinished uploads are not valid in another instance.
_EXCLUDED = {"workers", "shards", "retention_locks", "uploads"}
_ROWS = 10_000  # per member, and in memory
_MEMBER_BYTES = 1024**3
# None is written as SQL NULL, not as JSON null.
_JSON = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")


def tables() -> list[Table]:
    """The tables of a backup, in the order of their foreign keys."""
    return [table for table in Base.metadata.sorted_tables if table.name not in _EXCLUDED]


def dump_rows(session: Session, add: Callable[[str, bytes], None]) -> dict[str, int]:
    """Writes all rows in members of some thousands; returns the counts per table."""
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
    """The table of a member; None for files."""
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
    """The table with these columns only: later columns get their defaults."""
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
