"""Files that somebody is reading stay, even if nothing refers to them any more.

A backup takes a hold, then its snapshot of the rows. Whoever deletes commits first and looks for
holds after, so a file that goes in spite of the hold is one that the snapshot does not know.
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

RETENTION_SECONDS = 900.0  # how long files wait for somebody who has died


class Retention:
    def __init__(self, db: Database, hold_id: str) -> None:
        self._db = db
        self._id = hold_id

    def renew(self) -> None:
        """RetentionLost if files may have gone since the last time."""
        with self._db.write() as session:
            found = session.scalar(
                update(RetentionLock)
                .where(RetentionLock.id == self._id, RetentionLock.expires_at > db_now())
                .values(expires_at=db_now() + RETENTION_SECONDS)
                .returning(RetentionLock.id)
            )
        if found is None:
            raise RetentionLost("Files may have been removed meanwhile; start again.")


@contextmanager
def retain(db: Database, reason: str) -> Iterator[Retention]:
    """No file of the storage is removed before the block ends, as long as it is renewed."""
    hold_id = new_id("hold")
    with db.write() as session:
        session.execute(delete(RetentionLock).where(RetentionLock.expires_at <= db_now()))
        session.add(
            RetentionLock(id=hold_id, reason=reason, expires_at=db_now() + RETENTION_SECONDS)
        )
    try:
        yield Retention(db, hold_id)
    finally:
        with db.write() as session:
            session.execute(delete(RetentionLock).where(RetentionLock.id == hold_id))


def is_retained(session: Session) -> bool:
    held = select(RetentionLock.id).where(RetentionLock.expires_at > db_now()).limit(1)
    return session.scalar(held) is not None


def delete_unless_retained(db: Database, storage: Storage, keys: Iterable[str]) -> None:
    """Files or folders whose rows are gone, after the commit that took them.

    What a crash or a hold keeps is found by the collector.
    """
    with db.read() as session:
        if is_retained(session):
            return
    for key in keys:
        storage.delete_folder(key)
        storage.delete(key)
