"""Deletes files that no row refers to."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.db import Database, lock_name
from app.core.platform.settings import Settings
from app.core.platform.streams import batched
from app.core.platform.tables import BlobDeletion, Dataset, Embedding
from app.core.storage.base import Storage, StoredFile
from app.core.storage.deletion.owners import BLOB_KIND, KINDS, Kind
from app.core.storage.deletion.retention import is_retained
from app.core.storage.keys import blob_key, parent_of, thumbnail_folder

_CHUNK = 500  # files whose owners one statement looks up


@dataclass(frozen=True)
class Garbage:
    """A file, or a folder with its files, that is deleted as one."""

    kind: str
    key: str
    files: tuple[StoredFile, ...]

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.files)

    @property
    def modified(self) -> float:
        return max(file.modified for file in self.files)


def parts() -> list[tuple[Kind, str]]:
    """The folders of the storage, in pieces that are collected one at a time."""
    return [(kind, folder) for kind in KINDS for folder in kind.folders]


@dataclass(frozen=True)
class Collector:
    """A file is old if it was written or touched before a time. Only old files are deleted.

    A writer touches a file before it commits a row that refers to it. Owners are looked up after
    the age of a file was read, so a row that is not seen belongs to a file that is young by then.
    """

    db: Database
    storage: Storage
    settings: Settings

    def collect(self, *, dry_run: bool = False, now: float | None = None) -> Iterator[Garbage]:
        """Deletes garbage of every kind and yields it; with `dry_run` it is only found."""
        for kind, folder in parts():
            yield from self.collect_part(kind, folder, dry_run=dry_run, now=now)

    def collect_part(
        self, kind: Kind, folder: str, *, dry_run: bool = False, now: float | None = None
    ) -> Iterator[Garbage]:
        before = (time.time() if now is None else now) - kind.min_age_seconds(self.settings)
        for chunk in batched(self._old(kind, folder, before), _CHUNK):
            with self.db.read() as session:
                if not dry_run and is_retained(session):
                    return
                owned = kind.owned(session, [found.key for found in chunk])
            for found in chunk:
                if found.key not in owned and (dry_run or self._delete(kind, found, before)):
                    yield found

    def delete_scheduled_blobs(self) -> int:
        """Deletes blobs whose images were deleted; returns their number.

        Blobs that were never scheduled, because their ingest died, are found by `collect`.
        """
        grace = self.settings.delete_grace_seconds
        before = time.time() - grace
        with self.db.read() as session:
            if is_retained(session):
                return 0
            due = session.execute(
                select(BlobDeletion.sha256, BlobDeletion.scheduled_at)
                .where(BlobDeletion.scheduled_at <= db_now() - grace)
                .order_by(BlobDeletion.scheduled_at)
                .limit(_CHUNK)
            ).all()
            old = {
                blob_key(sha256): (sha256, scheduled_at)
                for sha256, scheduled_at in due
                if self._is_old(blob_key(sha256), before)
            }
            owned = BLOB_KIND.owned(session, list(old))
        deleted = {
            key for key in old if key not in owned and self.storage.delete_unless_young(key, before)
        }
        for key in deleted:
            self.storage.delete_folder(thumbnail_folder(old[key][0]))
        self._unschedule([old[key] for key in owned | deleted])
        return len(deleted)

    def _unschedule(self, rows: list[tuple[str, float]]) -> None:
        if not rows:
            return
        with self.db.write() as session:
            for sha256, scheduled_at in rows:
                session.execute(
                    delete(BlobDeletion).where(
                        BlobDeletion.sha256 == sha256,
                        # One that was scheduled again meanwhile stays for the next round.
                        BlobDeletion.scheduled_at == scheduled_at,
                    )
                )

    def _old(self, kind: Kind, folder: str, before: float) -> Iterator[Garbage]:
        listed = self.storage.list(folder)
        for key, files in groupby(listed, key=lambda file: parent_of(file.key, kind.depth)):
            found = Garbage(kind.name, key, tuple(files))
            if found.modified <= before:
                yield found

    def _is_old(self, key: str, before: float) -> bool:
        """A missing file counts as old."""
        found = self.storage.stat(key)
        return found is None or found.modified <= before

    def _delete(self, kind: Kind, found: Garbage, before: float) -> bool:
        if not kind.shared:
            return self._delete_files(found, before)
        # A job that is about to refer to these files waits for the lock, or its row is seen here.
        with self.db.write() as session:
            lock_name(session, found.key)
            _lock_datasets(session, found.key)
            if kind.owned(session, [found.key]):
                return False
            session.execute(delete(Embedding).where(Embedding.folder == found.key))
            return self._delete_files(found, before)

    def _delete_files(self, found: Garbage, before: float) -> bool:
        deleted = [self.storage.delete_unless_young(file.key, before) for file in found.files]
        return all(deleted)


def _lock_datasets(session: Session, folder: str) -> None:
    """No job can be created for these datasets before the transaction ends."""
    ids = select(Embedding.dataset_id).where(Embedding.folder == folder)
    session.execute(
        select(Dataset.id).where(Dataset.id.in_(ids)).order_by(Dataset.id).with_for_update()
    )
