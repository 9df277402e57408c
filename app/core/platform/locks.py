"""A lock on a name, for things that have no row of their own to lock."""

from sqlalchemy import text
from sqlalchemy.orm import Session


def lock_name(session: Session, name: str) -> None:
    """Nobody else holds it before this transaction ends. The transaction must be a writer's."""
    if session.get_bind().dialect.name == "postgresql":
        # SQLite has one writer at a time anyway.
        lock = text("SELECT pg_advisory_xact_lock(hashtextextended(:name, 0))")
        session.execute(lock, {"name": name})
