"""Who changed what: one entry a request, in the transaction of the change itself."""

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
    """What the border knows of a request. Code below it reads this and is passed no actor."""

    actor: Actor
    method: str
    route: str
    path: str
    request_id: str | None
    is_recorded: bool = False


# A worker has none: what jobs write is no request's doing.
_current: ContextVar[CurrentRequest | None] = ContextVar("current_request", default=None)


def begin_request(request: CurrentRequest) -> None:
    """For this task and the threads that it starts."""
    _current.set(request)


def acting_key_id() -> str | None:
    request = _current.get()
    return request.actor.key_id if request is not None else None


@contextmanager
def recorded(session: Session) -> Iterator[None]:
    """Around the work of a transaction: adds an entry if the work has changed a row.

    A transaction that is rolled back takes its entry along.
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
    """How many rows this transaction has changed so far."""
    if connection.dialect.name == "sqlite":
        # A cursor of SQLite does not know yet how many rows a statement with RETURNING changes.
        raw: Any = connection.connection.dbapi_connection
        before = raw.total_changes
        return lambda: int(raw.total_changes - before)
    count = 0

    @event.listens_for(connection, "after_cursor_execute")
    def note(
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
