"""Rules for migrations while the previous release still runs.

After 0001 a migration only adds. What it takes away waits for a later release, whose migration
says in `CONTRACTS` which release has stopped using it.
"""

import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from sqlalchemy import Engine, inspect


@dataclass(frozen=True)
class Shape:
    """The properties of a table that older code depends on."""

    columns: dict[str, tuple[str, bool, bool]]  # type, nullable, has a default
    unique: frozenset[tuple[str, ...]]
    references: frozenset[tuple[str, ...]]
    checks: frozenset[str]


Schema = dict[str, Shape]


def schema(engine: Engine) -> Schema:
    found = inspect(engine)
    return {name: _shape(found, name) for name in found.get_table_names()}


def _shape(found: Any, table: str) -> Shape:
    columns = {
        column["name"]: (str(column["type"]), column["nullable"], column["default"] is not None)
        for column in found.get_columns(table)
    }
    indexes = [index["column_names"] for index in found.get_indexes(table) if index["unique"]]
    constraints = [unique["column_names"] for unique in found.get_unique_constraints(table)]
    return Shape(
        columns=columns,
        unique=frozenset(tuple(names) for names in (*indexes, *constraints)),
        references=frozenset(
            tuple(key["constrained_columns"]) for key in found.get_foreign_keys(table)
        ),
        checks=frozenset(str(check["sqltext"]) for check in found.get_check_constraints(table)),
    )


def breaks(before: Schema, after: Schema) -> list[str]:
    """Changes that break code of the previous release."""
    problems = [f"table {name} is missing" for name in before.keys() - after.keys()]
    for name in before.keys() & after.keys():
        problems += [f"{name}: {problem}" for problem in _table_breaks(before[name], after[name])]
    return sorted(problems)


def _table_breaks(before: Shape, after: Shape) -> list[str]:
    problems = [
        f"column {name} is missing" for name in before.columns.keys() - after.columns.keys()
    ]
    for name, (type_, nullable, default) in after.columns.items():
        if name not in before.columns:
            if not nullable and not default:
                problems.append(f"column {name} is new and must be given")
        elif type_ != before.columns[name][0]:
            problems.append(f"column {name} has become {type_}")
        elif before.columns[name][1] and not nullable:
            problems.append(f"column {name} may no longer be null")
    old = set(before.columns)
    problems += [f"{names} must be unique" for names in after.unique - before.unique]
    refers = after.references - before.references
    problems += [f"{names} must refer to something" for names in refers if set(names) & old]
    return problems + [f"{check} must hold" for check in after.checks - before.checks]


_INDEX = re.compile(r"CREATE (?:UNIQUE )?INDEX (CONCURRENTLY )?.*? ON \"?(\w+)", re.I | re.S)
_ADD = re.compile(r"ALTER TABLE \"?(\w+).*ADD CONSTRAINT", re.I | re.S)


def long_locks(statements: list[str], before: Schema) -> list[str]:
    """Statements that lock a table of PostgreSQL for a time that grows with its size."""
    problems = []
    for statement in statements:
        index, constraint = _INDEX.match(statement), _ADD.match(statement)
        if index and not index[1] and index[2] in before:
            problems.append(f"an index on {index[2]} is not made CONCURRENTLY")
        if constraint and constraint[1] in before and "NOT VALID" not in statement:
            problems.append(f"a constraint on {constraint[1]} is checked at once")
    return problems


def is_contract(migration: ModuleType) -> bool:
    """Whether it names the release that stopped using what it removes."""
    named = getattr(migration, "CONTRACTS", None)
    return isinstance(named, str) and bool(named)
