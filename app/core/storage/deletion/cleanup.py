"""Schedules the deletion of blobs, and deletes what is due."""

import time

from sqlalchemy import ColumnElement, Select, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.settings import Settings
from app.core.platform.tables import BlobDeletion, Image, RefusedImage, Upload
from app.core.storage.base import Storage
from app.core.storage.deletion.collector import Collector, parts
from app.core.storage.deletion.retention import delete_unless_retained
from app.core.storage.keys import upload_key

_PART_SECONDS = 60.0  # one folder a minute: all of them within half a day
_DAY_SECONDS = 24 * 3600.0
_TEMPORARY_SECONDS = 24 * 3600.0  # no file takes longer to write


def schedule_deletion(session: Session, *which: ColumnElement[bool]) -> None:
    """Schedules the blobs of these images; call it before the images are deleted."""
    schedule_hashes(session, select(Image.sha256).where(*which))


def schedule_hashes(session: Session, hashes: Select[str]) -> None:
    """Schedules the blobs with these hashes."""
    found = hashes.subquery()
    rows = select(found.c.sha256, db_now()).group_by(found.c.sha256).order_by(found.c.sha256)
    statement = _insert(session).from_select(["sha256", "scheduled_at"], rows)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["sha256"], set_={"scheduled_at": statement.excluded.scheduled_at}
        )
    )


def delete_expired_uploads(db: Database, storage: Storage, settings: Settings) -> int:
    """Deletes the rows and files of expired uploads; returns their number."""
    expired = Upload.expires_at <= db_now()
    with db.read() as session:
        if session.scalar(select(Upload.id).where(expired).limit(1)) is None:
            return 0  # the usual case takes no write lock
    with db.write() as session:
        ids = session.scalars(delete(Upload).where(expired).returning(Upload.id)).all()
    for upload_id in ids:
        (settings.staging_dir / upload_id).unlink(missing_ok=True)
    delete_unless_retained(db, storage, [upload_key(upload_id) for upload_id in ids])
    return len(ids)


def delete_expired_refused(db: Database, settings: Settings) -> int:
    """Deletes refused images that are kept long enough; returns their number. Their bytes are
    scheduled."""
    expired = RefusedImage.kept_at <= db_now() - settings.keep_refused_days * _DAY_SECONDS
    with db.read() as session:
        if session.scalar(select(RefusedImage.id).where(expired).limit(1)) is None:
            return 0  # the usual case takes no write lock
    with db.write() as session:
        schedule_hashes(session, select(RefusedImage.sha256).where(expired))
        ids = session.scalars(delete(RefusedImage).where(expired).returning(RefusedImage.id)).all()
    return len(ids)


def delete_temporary_files(storage: Storage) -> int:
    """Deletes files on this host whose writers have crashed; returns their number."""
    return storage.clean(_TEMPORARY_SECONDS, time.time())


class Cleanup:
    """Deletes what is due, a part at a time. Any number of processes may run it."""

    def __init__(self, db: Database, storage: Storage, settings: Settings) -> None:
        self._db = db
        self._storage = storage
        self._settings = settings
        self._collector = Collector(db, storage, settings)
        self._parts = parts()
        self._minute = _minute()

    def run(self) -> int:
        """One round; returns how many files were deleted."""
        deleted = self._collector.delete_scheduled_blobs()
        deleted += delete_expired_uploads(self._db, self._storage, self._settings)
        if (minute := _minute()) != self._minute:
            self._minute = minute
            delete_expired_refused(self._db, self._settings)
            kind, folder = self._parts[minute % len(self._parts)]
            deleted += sum(len(found.files) for found in self._collector.collect_part(kind, folder))
            deleted += delete_temporary_files(self._storage)
        return deleted


def _minute() -> int:
    return int(time.time() / _PART_SECONDS)


def _insert(session: Session) -> "sqlite.Insert":
    on_postgres = session.get_bind().dialect.name == "postgresql"
    # The two dialects' statements are alike in all that is used here.
    return postgresql.insert(BlobDeletion) if on_postgres else sqlite.insert(BlobDeletion)  # type: ignore[return-value]
