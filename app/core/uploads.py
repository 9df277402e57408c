"""Resumable uploads. How much of one has arrived is the size of its file, whatever dies."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.clock import db_now
from app.core.errors import (
    ArchiveInvalid,
    BodyTooLarge,
    NotFound,
    UploadIncomplete,
    UploadLocked,
    UploadOffset,
)
from app.core.ids import new_id
from app.core.runtime import Runtime
from app.core.storage import Storage, raise_if_full
from app.core.tables import Upload

_HOUR = 3600.0
_LOCK_SECONDS = 5.0  # the end of a connection that broke is noticed within this time


def upload_key(upload_id: str) -> str:
    return f"uploads/{upload_id}"


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


def received_bytes(storage: Storage, upload_id: str) -> int:
    try:
        return storage.path(upload_key(upload_id)).stat().st_size
    except FileNotFoundError:
        return 0


def settled_offset(storage: Storage, upload: Upload) -> int:
    """The offset to go on from, once nobody writes any more."""
    with _locked(storage, upload.id) as file:
        return file.seek(0, os.SEEK_END)


class Appender:
    """Adds to the end of an upload's file, and never more than was announced."""

    def __init__(self, file: IO[bytes], upload: Upload) -> None:
        self._file = file
        self._length = upload.length
        self.offset = file.seek(0, os.SEEK_END)

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
            self.offset = self._file.seek(0, os.SEEK_END)


@contextmanager
def appending(storage: Storage, upload: Upload, offset: int) -> Iterator[Appender]:
    """What was written stays, also if the block fails: the sender goes on from there."""
    with _locked(storage, upload.id) as file:
        appender = Appender(file, upload)
        if appender.offset != offset:
            raise UploadOffset(f"The upload has {appender.offset} bytes; go on from there.")
        try:
            yield appender
        finally:
            os.fsync(file.fileno())


def use_upload(session: Session, storage: Storage, tenant: str, upload_id: str) -> str:
    """The key of a finished upload. Its row goes in this transaction: it is used only once."""
    upload = get_upload(session, tenant, upload_id, lock=True)
    received = received_bytes(storage, upload.id)
    if received < upload.length:
        raise UploadIncomplete(f"Only {received:,} of {upload.length:,} bytes have arrived.")
    if upload.length == 0:
        raise ArchiveInvalid("The upload is empty; send a zip or tar archive.")
    session.delete(upload)
    session.flush()
    return upload_key(upload.id)


def delete_upload(runtime: Runtime, tenant: str, upload_id: str) -> None:
    with runtime.db.write() as session:
        session.delete(get_upload(session, tenant, upload_id, lock=True))
    runtime.storage.delete(upload_key(upload_id))


def remove_expired(runtime: Runtime) -> int:
    """Uploads whose time is over. Files that a crash left without an owner go with the garbage."""
    over = Upload.expires_at <= db_now()
    with runtime.db.read() as session:
        if session.scalar(select(Upload.id).where(over).limit(1)) is None:
            return 0  # the usual case takes no writer's turn
    with runtime.db.write() as session:
        expired = session.scalars(delete(Upload).where(over).returning(Upload.id)).all()
    for upload_id in expired:
        runtime.storage.delete(upload_key(upload_id))
    return len(expired)


@contextmanager
def _locked(storage: Storage, upload_id: str) -> Iterator[IO[bytes]]:
    """The file of an upload, for one writer at a time in all processes of this machine."""
    path = storage.path(upload_key(upload_id))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab", buffering=0) as file:
        until = time.monotonic() + _LOCK_SECONDS
        while not _try_lock(file):
            if time.monotonic() > until:
                raise UploadLocked("Another request is still writing to this upload.")
            time.sleep(0.02)
        yield file


def _try_lock(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
