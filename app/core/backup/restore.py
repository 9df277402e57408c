"""Restores a backup into an empty instance, completely or not at all."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from app.core.backup.archive import read_members, verify
from app.core.backup.files import FOLDER
from app.core.backup.rows import check_known, count_rows, is_empty, load_rows, table_of
from app.core.jobs.records import add_log
from app.core.platform.clock import db_now
from app.core.platform.db import Database
from app.core.platform.errors import BackupInvalid, NotEmpty
from app.core.platform.migrations import is_ancestor
from app.core.platform.tables import Job
from app.core.storage import Storage
from app.core.storage.deletion.owners import KINDS
from app.core.storage.keys import prefix_of

_BLOCK = 1024 * 1024
Progress = Callable[[str, int], None]


def restore_backup(
    db: Database, storage: Storage, path: Path, *, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Returns the manifest. Files are written first: without rows they can be collected."""
    manifest = verify(path)
    _check_fits(manifest)
    _check_empty(db)
    _write_files(storage, path, progress)
    with db.write() as session:
        if session.get_bind().dialect.name == "postgresql":
            session.execute(text("SET LOCAL statement_timeout = 0"))
        if not is_empty(session):  # it was used meanwhile
            raise _not_empty()
        _write_rows(session, path, manifest["tables"], progress)
        _queue_again(session)
    return manifest


def _check_fits(manifest: dict[str, Any]) -> None:
    if not is_ancestor(manifest["revision"]):
        raise BackupInvalid(
            f"The backup is of a later release (tables {manifest['revision']}); "
            "restore it with that release."
        )
    check_known(list(manifest["tables"]))


def _check_empty(db: Database) -> None:
    with db.read() as session:
        if not is_empty(session):
            raise _not_empty()


def _not_empty() -> NotEmpty:
    return NotEmpty("This instance is not empty; restore the backup into a new one.")


def _write_files(storage: Storage, path: Path, progress: Progress) -> None:
    kinds = {kind.name for kind in KINDS}
    batch, pending, done = storage.batch(), 0, 0
    for member in read_members(path):
        if not member.name.startswith(FOLDER):
            continue
        key = member.name.removeprefix(FOLDER)
        if prefix_of(key) not in kinds:
            raise BackupInvalid(f"The backup has a file of unknown kind: {key}.")
        if member.size <= _BLOCK:
            batch.write(key, member.file.read())
            pending += 1
        else:
            with storage.writing(key) as file:
                shutil.copyfileobj(member.file, file, _BLOCK)
        if pending == 500:
            batch.flush()
            pending = 0
        done += 1
        progress("files", done)
    batch.flush()


def _write_rows(session: Session, path: Path, counts: dict[str, int], progress: Progress) -> None:
    done = 0
    for member in read_members(path):
        table = table_of(member.name)
        if table is None:
            break  # all rows are before the first file
        done += load_rows(session, table, member.file.read())
        progress("rows", done)
    for table, count in counts.items():
        if count_rows(session, table) != count:
            raise BackupInvalid(f"The backup does not have all rows of {table}.")


def _queue_again(session: Session) -> None:
    """Queues running jobs; a new fence invalidates writes of their workers elsewhere."""
    running = session.scalars(select(Job.id).where(Job.status == "running")).all()
    unclaimed = {"lease_until": 0.0, "worker": None, "notify_at": 0.0, "notifications": 0}
    incremented = {"fence": Job.fence + 1, "version": Job.version + 1}
    jobs = update(Job).execution_options(synchronize_session=False)
    session.execute(jobs.where(Job.status == "cancelling").values(**unclaimed, **incremented))
    session.execute(
        jobs.where(Job.status == "running").values(
            status="queued", queued_at=db_now(), **unclaimed, **incremented
        )
    )
    for job_id in running:
        add_log(session, job_id, "Restored from a backup; queued again.")
