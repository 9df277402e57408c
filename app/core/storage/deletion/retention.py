"""Retention locks: while one is valid, no file is deleted from the storage.

A backup takes a lock, then its snapshot of the rows. Deletion commits the rows first and checks
for locks after, so a file that is deleted in spite of the lock is not in the snapshot.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import delete, select, update
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import RetentionLost
from app.core.platform.ids import new_id
from app.core.platform.tables import RetentionLock
from app.core.storage.base import Storage

RETENTION_SECONDS = 900.0  # how long the lock of a process that has died stays valid


class Retention:
    """A lock that was taken; `renew` it in less than `RETENTION_SECONDS`."""

    def __init__(self, db: Database, lock_id: str) -> None:
        self._db = db
        self._id = lock_id

    def renew(self) -> None:
        """Raises RetentionLost if the lock has expired: files may have been deleted since."""
        with self._db.write() as session:
            found = session.scalar(
                update(RetentionLock)
                .where(RetentionLock.id == self._id, RetentionLock.expires_at > db_now())
                .values(expires_at=db_now() + RETENTION_SECONDS)
                .returning(RetentionLock.id)
            )
        if found is None:
            raise RetentionLost(
                f"The retention lock was not renewed for {RETENTION_SECONDS:.0f} s and files may "
                "have been deleted; start again."
            )


@contextmanager
def retain(db: Database, reason: str) -> Iterator[Retention]:
    """Holds a retention lock until the block ends."""
    lock_id = new_id("hold")
    with db.write() as session:
        session.execute(delete(RetentionLock).where(RetentionLock.expires_at <= db_now()))
        session.add(
            RetentionLock(id=lock_id, reason=reason, expires_at=db_now() + RETENTION_SECONDS)
        )
    try:
        yield Retention(db, lock_id)
    finally:
        with db.write() as session:
            session.execute(delete(RetentionLock).where(RetentionLock.id == lock_id))


def is_retained(session: Session) -> bool:
    valid = select(RetentionLock.id).where(RetentionLock.expires_at > db_now()).limit(1)
    return session.scalar(valid) is not None


def delete_unless_retained(db: Database, storage: Storage, keys: Iterable[str]) -> None:
    """Deletes files or folders; call it after the commit that deleted their rows.

    The collector deletes what a crash or a retention lock leaves behind.
    """
    with db.read() as session:
        if is_retained(session):
            return
    for key in keys:
        storage.delete_folder(key)
        storage.delete(key)
