"""Who changed what: one entry a request, in the transaction of the change itself."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session

from app.core.access.actor import Actor
from app.core.ids import new_id
from app.core.tables import AuditEntry


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
    changed = False

    def note(_connection: Any, cursor: Any, *rest: Any) -> None:
        nonlocal changed
        statement = rest[2]
        writes = statement.isinsert or statement.isupdate or statement.isdelete
        changed = changed or (writes and cursor.rowcount != 0)

    event.listen(session.connection(), "after_cursor_execute", note)
    yield
    session.flush()
    if changed:
        session.add(_entry(request))
        event.listen(session, "after_commit", lambda _: setattr(request, "is_recorded", True))


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
