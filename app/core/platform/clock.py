"""The database's clock: leases and timestamps are compared by no other."""

from typing import Any

from sqlalchemy import Double
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement


class db_now(FunctionElement[float]):  # noqa: N801 - reads as the SQL function it is
    """Seconds since 1970, read from the database at the time of the statement."""

    type = Double()
    inherit_cache = True


@compiles(db_now, "sqlite")
def _sqlite(_element: db_now, _compiler: SQLCompiler, **_: Any) -> str:
    # julianday works in every SQLite; its precision is about 0.1 ms.
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(db_now, "postgresql")
def _postgresql(_element: db_now, _compiler: SQLCompiler, **_: Any) -> str:
    return "extract(epoch from clock_timestamp())::double precision"
