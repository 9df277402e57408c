"""Same key and body: the same answer. The key is stored in the transaction that it guards."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy.orm import Session

from app.core.errors import IdempotencyInProgress, IdempotencyMismatch
from app.core.tables import IdempotencyKey

_in_flight: set[tuple[str, str]] = set()
_lock = threading.Lock()


@contextmanager
def in_flight(tenant: str, key: str | None) -> Iterator[None]:
    """Refuse a twin while the first request still runs in this process.

    Between processes the primary key decides: the later commit fails and answers with the
    earlier one's response.
    """
    if key is None:
        yield
        return
    with _lock:
        if (tenant, key) in _in_flight:
            raise IdempotencyInProgress("A request with this Idempotency-Key is still running.")
        _in_flight.add((tenant, key))
    try:
        yield
    finally:
        with _lock:
            _in_flight.discard((tenant, key))


def recall(
    session: Session, tenant: str, key: str | None, request_hash: str
) -> dict[str, Any] | None:
    """The stored answer, if this request was answered before."""
    if key is None:
        return None
    row = session.get(IdempotencyKey, (tenant, key))
    if row is None:
        return None
    if row.request_hash != request_hash:
        raise IdempotencyMismatch(
            "This Idempotency-Key was used for another request; take a new one."
        )
    return row.response


def remember(
    session: Session, tenant: str, key: str | None, request_hash: str, response: dict[str, Any]
) -> None:
    if key is not None:
        session.add(
            IdempotencyKey(tenant=tenant, key=key, request_hash=request_hash, response=response)
        )
