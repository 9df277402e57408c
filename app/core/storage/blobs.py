"""The bytes of images, stored under their hash; removed some time after their last image went."""

import time
from collections.abc import Sequence

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.tables import BlobDeletion, Image
from app.core.storage import Batch, Storage
from app.core.storage.gc.retention import is_retained
from app.core.storage.keys import blob_key, thumbnail_folder

_SWEEP_ROWS = 500


def keep_blob(storage: Storage, sha256: str, data: bytes, batch: Batch | None = None) -> None:
    """Store the bytes, or make those that are there young, so that no sweep takes them."""
    if not storage.touch(blob_key(sha256)):
        (batch or storage).write(blob_key(sha256), data)


def schedule_deletion(session: Session, *which: ColumnElement[bool]) -> None:
    """Have the sweep look at the bytes of these images, which are about to go."""
    hashes = select(Image.sha256, db_now()).where(*which)
    rows = hashes.group_by(Image.sha256).order_by(Image.sha256)
    statement = _insert(session).from_select(["sha256", "scheduled_at"], rows)
    session.execute(
        statement.on_conflict_do_update(
            index_elements=["sha256"], set_={"scheduled_at": statement.excluded.scheduled_at}
        )
    )


def delete_scheduled_blobs(db: Database, storage: Storage, grace_seconds: float) -> int:
    """One round of the sweep; returns how many blobs were removed.

    Bytes that no row condemns, because their ingest died before it wrote one, are left to the
    collector.
    """
    before = time.time() - grace_seconds
    with db.read() as session:
        if is_retained(session):
            return 0
        due = session.execute(
            select(BlobDeletion.sha256, BlobDeletion.scheduled_at)
            .where(BlobDeletion.scheduled_at <= db_now() - grace_seconds)
            .order_by(BlobDeletion.scheduled_at)
            .limit(_SWEEP_ROWS)
        ).all()
        old = [row for row in due if _is_old(storage, row.sha256, before)]
        # Asked after the look at the file: whoever has used it since has made it young.
        used = _used(session, [row.sha256 for row in old])
    unused = [row.sha256 for row in old if row.sha256 not in used]
    removed = {sha256 for sha256 in unused if _remove(storage, sha256, before)}
    settled = [row for row in old if row.sha256 in used | removed]
    if settled:
        with db.write() as session:
            for row in settled:  # condemned again in between: it stays for the next round
                _forget(session, row.sha256, row.scheduled_at)
    return len(removed)


def _insert(session: Session) -> "sqlite.Insert":
    on_postgres = session.get_bind().dialect.name == "postgresql"
    # The two dialects' statements are alike in all that is used here.
    return postgresql.insert(BlobDeletion) if on_postgres else sqlite.insert(BlobDeletion)  # type: ignore[return-value]


def _used(session: Session, hashes: Sequence[str]) -> set[str]:
    return set(session.scalars(select(Image.sha256).where(Image.sha256.in_(hashes)).distinct()))


def _forget(session: Session, sha256: str, scheduled_at: float) -> None:
    session.execute(
        delete(BlobDeletion).where(
            BlobDeletion.sha256 == sha256, BlobDeletion.scheduled_at == scheduled_at
        )
    )


def _is_old(storage: Storage, sha256: str, before: float) -> bool:
    """A file that is not there counts as old."""
    found = storage.stat(blob_key(sha256))
    return found is None or found.modified <= before


def _remove(storage: Storage, sha256: str, before: float) -> bool:
    if not storage.delete_unless_young(blob_key(sha256), before):
        return False
    storage.delete_folder(thumbnail_folder(sha256))
    return True
