"""Resumable uploads. How much of one has arrived is the size of its file, whatever dies.

The file grows in the staging folder of the API's host; when it is whole, it goes to the storage.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import (
    ArchiveInvalid,
    BodyTooLarge,
    NotFound,
    UploadIncomplete,
    UploadLocked,
    UploadOffset,
)
from app.core.platform.ids import new_id
from app.core.platform.settings import Settings
from app.core.platform.tables import Upload
from app.core.storage import Storage, raise_if_full
from app.core.storage.base import delete_old_files
from app.core.storage.keys import UPLOADS, upload_key

_HOUR = 3600.0
_LOCK_SECONDS = 5.0  # the end of a connection that broke is noticed within this time


def delete_stale_files(settings: Settings) -> None:
    """Deletes abandoned uploads from the staging folder of this host.

    A folder inside the blobs is the collector's; the worker does not see any other.
    """
    folder = settings.staging_dir
    if folder != settings.blob_dir / UPLOADS and folder.is_dir():
        delete_old_files(folder, time.time() - settings.upload_hours * _HOUR)


def create_upload(
    session: Session, *, tenant: str, length: int, attributes: dict[str, Any], hours: float
) -> Upload:
    upload = Upload(
        id=new_id("up"),
        tenant=tenant,
        length=length,
        attributes=attributes,
        expires_at=db_now() + hours * _HOUR,
    )
    session.add(upload)
    session.flush()
    session.refresh(upload)
    return upload


def get_upload(session: Session, tenant: str, upload_id: str, *, lock: bool = False) -> Upload:
    query = select(Upload).where(
        Upload.id == upload_id, Upload.tenant == tenant, Upload.expires_at > db_now()
    )
    found = session.scalar(query.with_for_update() if lock else query)
    if found is None:
        raise NotFound(f"There is no upload {upload_id}, or it has expired or been used.")
    return found


class Appender:
    """Adds to the end of an upload's file, and never more than was announced."""

    def __init__(self, file: IO[bytes], upload: Upload, offset: int) -> None:
        self._file = file
        self._length = upload.length
        self.offset = offset

    def write(self, data: bytes) -> None:
        if self.offset + len(data) > self._length:
            raise BodyTooLarge(f"The upload was announced with {self._length:,} bytes.")
        left = memoryview(data)
        try:
            while left:  # an unbuffered file may take less than it is given
                left = left[self._file.write(left) :]
        except OSError as error:
            raise_if_full(error)
            raise
        finally:
            if data:
                self.offset = self._file.seek(0, os.SEEK_END)


@dataclass(frozen=True)
class UploadFiles:
    """The bytes of uploads: in the staging folder while they arrive, then in the storage."""

    storage: Storage
    staging: Path

    def offset(self, upload: Upload) -> int:
        """The offset to go on from, once nothing else writes to the upload."""
        with self._locked(upload.id) as file:
            return self._received(upload, file)

    @contextmanager
    def append(self, upload: Upload, offset: int) -> Iterator[Appender]:
        """What was written stays, also if the block fails: the sender goes on from there."""
        with self._locked(upload.id) as file:
            appender = Appender(file, upload, self._received(upload, file))
            if appender.offset != offset:
                raise UploadOffset(f"The upload has {appender.offset} bytes; go on from there.")
            try:
                yield appender
            finally:
                os.fsync(file.fileno())
            if appender.offset == upload.length:
                self._store(upload)

    def store(self, upload: Upload) -> str:
        """The key of an upload that is whole; it goes to the storage now if it could not before."""
        if upload.length == 0:
            raise ArchiveInvalid("The upload is empty; send a zip or tar archive.")
        with self._locked(upload.id) as file:
            received = self._received(upload, file)
            if received < upload.length:
                raise UploadIncomplete(
                    f"Only {received:,} of {upload.length:,} bytes have arrived."
                )
            self._store(upload)
        return upload_key(upload.id)

    def delete(self, upload_id: str) -> None:
        (self.staging / upload_id).unlink(missing_ok=True)
        self.storage.delete(upload_key(upload_id))

    def _received(self, upload: Upload, file: IO[bytes]) -> int:
        """Of this open file, unless it is new because the whole is in the storage already."""
        here = file.seek(0, os.SEEK_END)
        return here or (upload.length if self._is_stored(upload) else 0)

    def _is_stored(self, upload: Upload) -> bool:
        found = self.storage.stat(upload_key(upload.id))
        return found is not None and found.bytes == upload.length

    def _store(self, upload: Upload) -> None:
        path = self.staging / upload.id
        if path.stat().st_size == upload.length:
            self.storage.move_in(upload_key(upload.id), path)

    @contextmanager
    def _locked(self, upload_id: str) -> Iterator[IO[bytes]]:
        """The file of an upload, for one writer at a time among all processes on its folder."""
        path = self.staging / upload_id
        path.parent.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + _LOCK_SECONDS
        while (file := _try_open(path)) is None:
            if time.monotonic() > until:
                raise UploadLocked("Another request is still writing to this upload.")
            time.sleep(0.02)
        with file:
            try:
                yield file
            finally:
                if os.fstat(file.fileno()).st_size == 0:
                    path.unlink(missing_ok=True)  # opened only to read its size


def store_upload(db: Database, files: UploadFiles, tenant: str, upload_id: str) -> str | None:
    """The key of an upload that is whole; None if a request that is now repeated has used it."""
    with db.read() as session:
        try:
            upload = get_upload(session, tenant, upload_id)
        except NotFound:
            return None
    return files.store(upload)


def use_upload(session: Session, tenant: str, upload_id: str) -> str:
    """The key of a stored upload. Its row goes in this transaction: it is used only once."""
    upload = get_upload(session, tenant, upload_id, lock=True)
    session.delete(upload)
    session.flush()
    return upload_key(upload.id)


def delete_upload(db: Database, files: UploadFiles, tenant: str, upload_id: str) -> None:
    with db.write() as session:
        session.delete(get_upload(session, tenant, upload_id, lock=True))
    files.delete(upload_id)


def _try_open(path: Path) -> IO[bytes] | None:
    """Locked, and still the file of this name: whoever held it may have moved it."""
    file = path.open("ab", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None
