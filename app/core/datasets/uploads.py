"""Resumable uploads. The offset of an upload is the size of its file, also after a crash.

The file grows in the staging folder of the API's host; when it is complete, it is moved to the
storage.
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
_LOCK_SECONDS = 5.0  # a broken connection is noticed within this time


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
    """Appends to the file of an upload, up to its announced length."""

    def __init__(self, file: IO[bytes], upload: Upload, offset: int) -> None:
        self._file = file
        self._length = upload.length
        self.offset = offset

    def write(self, data: bytes) -> None:
        if self.offset + len(data) > self._length:
            raise BodyTooLarge(f"The body exceeds Upload-Length, {self._length:,} bytes.")
        left = memoryview(data)
        try:
            while left:  # an unbuffered file may write fewer bytes
                left = left[self._file.write(left) :]
        except OSError as error:
            raise_if_full(error)
            raise
        finally:
            if data:
                self.offset = self._file.seek(0, os.SEEK_END)


@dataclass(frozen=True)
class UploadFiles:
    """The files of uploads: in the staging folder while they arrive, then in the storage."""

    storage: Storage
    staging: Path

    def offset(self, upload: Upload) -> int:
        """The offset to resume from; waits for a running write."""
        with self._locked(upload.id) as file:
            return self._received(upload, file)

    @contextmanager
    def append(self, upload: Upload, offset: int) -> Iterator[Appender]:
        """Opens an upload to append. If the block fails, written bytes stay: resume from there."""
        with self._locked(upload.id) as file:
            appender = Appender(file, upload, self._received(upload, file))
            if appender.offset != offset:
                raise UploadOffset(f"The upload has {appender.offset} bytes; continue from there.")
            try:
                yield appender
            finally:
                os.fsync(file.fileno())
            if appender.offset == upload.length:
                self._store(upload)

    def store(self, upload: Upload) -> str:
        """The key of a complete upload; moves it to the storage if that failed before."""
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
        """Bytes received; an empty file may be new because the upload is in the storage."""
        size = file.seek(0, os.SEEK_END)
        return size or (upload.length if self._is_stored(upload) else 0)

    def _is_stored(self, upload: Upload) -> bool:
        found = self.storage.stat(upload_key(upload.id))
        return found is not None and found.bytes == upload.length

    def _store(self, upload: Upload) -> None:
        path = self.staging / upload.id
        if path.stat().st_size == upload.length:
            self.storage.move_in(upload_key(upload.id), path)

    @contextmanager
    def _locked(self, upload_id: str) -> Iterator[IO[bytes]]:
        """Opens the file of an upload with a lock against all processes of its folder."""
        path = self.staging / upload_id
        path.parent.mkdir(parents=True, exist_ok=True)
        until = time.monotonic() + _LOCK_SECONDS
        while (file := _try_open(path)) is None:
            if time.monotonic() > until:
                raise UploadLocked("Another request is still writing to this upload; retry.")
            time.sleep(0.02)
        with file:
            try:
                yield file
            finally:
                if os.fstat(file.fileno()).st_size == 0:
                    path.unlink(missing_ok=True)  # opened only for its size


def store_upload(db: Database, files: UploadFiles, tenant: str, upload_id: str) -> str | None:
    """The key of a complete upload; None if it was used, as by a repeated request."""
    with db.read() as session:
        try:
            upload = get_upload(session, tenant, upload_id)
        except NotFound:
            return None
    return files.store(upload)


def use_upload(session: Session, tenant: str, upload_id: str) -> str:
    """The key of a stored upload. Deletes its row, so that it is used only once."""
    upload = get_upload(session, tenant, upload_id, lock=True)
    session.delete(upload)
    session.flush()
    return upload_key(upload.id)


def delete_upload(db: Database, files: UploadFiles, tenant: str, upload_id: str) -> None:
    with db.write() as session:
        session.delete(get_upload(session, tenant, upload_id, lock=True))
    files.delete(upload_id)


def _try_open(path: Path) -> IO[bytes] | None:
    """Opens and locks the file; None if it is locked, or was moved meanwhile."""
    file = path.open("ab", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return file
    except (BlockingIOError, FileNotFoundError):
        pass
    file.close()
    return None
