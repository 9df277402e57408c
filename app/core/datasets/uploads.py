"""Resumable uploads. How much of one has arrived is the size of its file, whatever dies.

The file grows in the staging folder of the API's host; when it is whole, it goes to the storage.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from app.core.platform.clock import db_now
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
from app.core.runtime import Runtime
from app.core.storage import raise_if_full

_HOUR = 3600.0
_LOCK_SECONDS = 5.0  # the end of a connection that broke is noticed within this time


def upload_key(upload_id: str) -> str:
    return f"uploads/{upload_id}"


def remove_stale(settings: Settings) -> None:
    """What senders have left on this host. Nobody else comes by here, if others keep the files."""
    if settings.staging_dir == settings.blob_dir / "uploads" or not settings.staging_dir.is_dir():
        return
    long_ago = time.time() - settings.upload_hours * _HOUR
    for path in settings.staging_dir.iterdir():
        with suppress(FileNotFoundError):
            if path.stat().st_mtime < long_ago:
                path.unlink()


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


def settled_offset(runtime: Runtime, upload: Upload) -> int:
    """The offset to go on from, once nobody writes any more."""
    with _locked(runtime, upload.id) as file:
        return _received(runtime, upload, file)


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


@contextmanager
def appending(runtime: Runtime, upload: Upload, offset: int) -> Iterator[Appender]:
    """What was written stays, also if the block fails: the sender goes on from there."""
    with _locked(runtime, upload.id) as file:
        appender = Appender(file, upload, _received(runtime, upload, file))
        if appender.offset != offset:
            raise UploadOffset(f"The upload has {appender.offset} bytes; go on from there.")
        try:
            yield appender
        finally:
            os.fsync(file.fileno())
        if appender.offset == upload.length:
            _store(runtime, upload)


def store_upload(runtime: Runtime, tenant: str, upload_id: str) -> str | None:
    """The key of an upload that is whole; it goes to the storage now if it could not before."""
    with runtime.db.read() as session:
        try:
            upload = get_upload(session, tenant, upload_id)
        except NotFound:
            return None  # it may have been used by a request that is asked for again
    if upload.length == 0:
        raise ArchiveInvalid("The upload is empty; send a zip or tar archive.")
    with _locked(runtime, upload.id) as file:
        received = _received(runtime, upload, file)
        if received < upload.length:
            raise UploadIncomplete(f"Only {received:,} of {upload.length:,} bytes have arrived.")
        _store(runtime, upload)
    return upload_key(upload.id)


def use_upload(session: Session, tenant: str, upload_id: str) -> str:
    """The key of a stored upload. Its row goes in this transaction: it is used only once."""
    upload = get_upload(session, tenant, upload_id, lock=True)
    session.delete(upload)
    session.flush()
    return upload_key(upload.id)


def delete_upload(runtime: Runtime, tenant: str, upload_id: str) -> None:
    with runtime.db.write() as session:
        session.delete(get_upload(session, tenant, upload_id, lock=True))
    _drop(runtime, upload_id)


def remove_expired(runtime: Runtime) -> int:
    """Uploads whose time is over. Files that a crash left without an owner go with the garbage."""
    over = Upload.expires_at <= db_now()
    with runtime.db.read() as session:
        if session.scalar(select(Upload.id).where(over).limit(1)) is None:
            return 0  # the usual case takes no writer's turn
    with runtime.db.write() as session:
        expired = session.scalars(delete(Upload).where(over).returning(Upload.id)).all()
    for upload_id in expired:
        _drop(runtime, upload_id)
    return len(expired)


def _staged(runtime: Runtime, upload_id: str) -> Path:
    return runtime.settings.staging_dir / upload_id


def _received(runtime: Runtime, upload: Upload, file: IO[bytes]) -> int:
    """Of this open file, unless it is new because the whole is in the storage already."""
    here = file.seek(0, os.SEEK_END)
    return here or (upload.length if _is_stored(runtime, upload) else 0)


def _is_stored(runtime: Runtime, upload: Upload) -> bool:
    found = runtime.storage.look(upload_key(upload.id))
    return found is not None and found.bytes == upload.length


def _store(runtime: Runtime, upload: Upload) -> None:
    path = _staged(runtime, upload.id)
    if path.stat().st_size == upload.length:
        runtime.storage.take(upload_key(upload.id), path)


def _drop(runtime: Runtime, upload_id: str) -> None:
    _staged(runtime, upload_id).unlink(missing_ok=True)
    runtime.storage.delete(upload_key(upload_id))


@contextmanager
def _locked(runtime: Runtime, upload_id: str) -> Iterator[IO[bytes]]:
    """The file of an upload, for one writer at a time in all processes that share its folder."""
    path = _staged(runtime, upload_id)
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
                path.unlink(missing_ok=True)  # opened only to be looked at


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
