"""The audit log: one entry per request that changes rows, in the same transaction."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, event, select
from sqlalchemy.orm import Session

from app.core.platform.actor import Actor
from app.core.platform.ids import new_id
from app.core.platform.tables import AuditEntry


@dataclass
class CurrentRequest:
    """The request that is being handled; a context variable holds it."""

    actor: Actor
    method: str
    route: str
    path: str
    request_id: str | None
    is_recorded: bool = False


# Workers have none: changes by jobs are not audited.
_current: ContextVar[CurrentRequest | None] = ContextVar("current_request", default=None)


def begin_request(request: CurrentRequest) -> None:
    """Sets the request for this task and the threads that it starts."""
    _current.set(request)


def acting_key_id() -> str | None:
    request = _current.get()
    return request.actor.key_id if request is not None else None


@contextmanager
def recorded(session: Session) -> Iterator[None]:
    """Adds an audit entry at the end of a transaction that has changed rows.

    A rollback also removes the entry.
    """
    request = _current.get()
    if request is None or request.is_recorded:
        yield
        return
    changed_rows = _count_changes(session.connection())
    yield
    session.flush()
    if changed_rows():
        session.add(_entry(request))
        event.listen(session, "after_commit", lambda _: setattr(request, "is_recorded", True))


def _count_changes(connection: Connection) -> Callable[[], int]:
    """Returns a function that returns the number of rows changed since this call."""
    if connection.dialect.name == "sqlite":
        # The row count of SQLite's cursor is not yet known for statements with RETURNING.
        raw: Any = connection.connection.dbapi_connection
        before = raw.total_changes
        return lambda: int(raw.total_changes - before)
    count = 0

    @event.listens_for(connection, "after_cursor_execute")
    def add_row_count(
        _connection: Any, cursor: Any, _sql: str, _values: Any, statement: Any, _many: bool
    ) -> None:
        nonlocal count
        if statement.isinsert or statement.isupdate or statement.isdelete:
            count += cursor.rowcount

    return lambda: count


def _entry(request: CurrentRequest) -> AuditEntry:
    return AuditEntry(
        id=new_id("aud"),
        tenant=request.actor.tenant,
        key_id=request.actor.key_id,
        key_name=request.actor.key_name,
        method=request.method,
        route=request.route,
        path=request.path,
        request_id=request.request_id,
    )


def select_entries(tenant: str, *, key_id: str | None, since: float | None) -> Select[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.tenant == tenant)
    if key_id:
        query = query.where(AuditEntry.key_id == key_id)
    if since is not None:
        # Times are shown rounded to microseconds: the one that was shown must be found again.
        query = query.where(AuditEntry.at >= since - 1e-6)
    return query
