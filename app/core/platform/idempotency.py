"""Idempotency keys: the same key and body get the same response.

The key is stored in the transaction that it guards.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from app.core.platform.db import Database
from app.core.platform.errors import IdempotencyInProgress, IdempotencyMismatch
from app.core.platform.tables import IdempotencyKey

_in_flight: set[tuple[str, str]] = set()
_lock = threading.Lock()


@contextmanager
def in_flight(tenant: str, key: str | None) -> Iterator[None]:
    """Refuses a request while another with the same key runs in this process.

    Between processes the primary key decides: the later commit fails and returns the response of
    the earlier one.
    """
    if key is None:
        yield
        return
    with _lock:
        if (tenant, key) in _in_flight:
            raise IdempotencyInProgress(
                "A request with this Idempotency-Key is still running; retry later."
            )
        _in_flight.add((tenant, key))
    try:
        yield
    finally:
        with _lock:
            _in_flight.discard((tenant, key))


def answer_once(
    db: Database,
    tenant: str,
    key: str | None,
    request_hash: str,
    create: Callable[[Session], dict[str, Any]],
) -> tuple[dict[str, Any], bool]:
    """Returns the response of the first request with this key, and whether this is the first.

    What `create` writes and the key are one commit.
    """
    try:
        with db.write() as session:
            if (response := _stored(session, tenant, key, request_hash)) is not None:
                return response, False
            response = create(session)
            if key is not None:
                session.add(_row(tenant, key, request_hash, response))
            return response, True
    except IntegrityError:  # a request in another process was first
        with db.read() as session:
            stored = _stored(session, tenant, key, request_hash)
        if stored is None:
            raise
        return stored, False


def _stored(
    session: Session, tenant: str, key: str | None, request_hash: str
) -> dict[str, Any] | None:
    row = session.get(IdempotencyKey, (tenant, key)) if key is not None else None
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise IdempotencyMismatch(
            "This Idempotency-Key was used for a different request; use a new one."
        )
    return row.response


def _row(tenant: str, key: str, request_hash: str, response: dict[str, Any]) -> IdempotencyKey:
    return IdempotencyKey(tenant=tenant, key=key, request_hash=request_hash, response=response)
