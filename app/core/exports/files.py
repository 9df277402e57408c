"""Finished exports: a row and a file each."""

import re
import shutil

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.core.datasets import OPEN
from app.core.db import Database
from app.core.errors import NotFound
from app.core.exports.formats import FORMATS
from app.core.storage import Storage
from app.core.tables import Export, Job

_ROOT = "exports"
_NAME_BYTES = 80


def export_filename(dataset_name: str, revision: int, format_: str) -> str:
    """`holiday-photos-rev3.parquet`"""
    words = re.sub(r"\W+", "-", dataset_name).encode()[:_NAME_BYTES].decode(errors="ignore")
    return f"{words.strip('-_') or 'dataset'}-rev{revision}{FORMATS[format_].ending}"


def export_key(job_id: str, filename: str) -> str:
    return f"{_ROOT}/{job_id}/{filename}"


def get_export(session: Session, tenant: str, export_id: str) -> Export:
    found = session.scalar(select(Export).where(Export.id == export_id, Export.tenant == tenant))
    if found is None:
        raise NotFound(f"There is no export {export_id}.")
    return found


def delete_export(db: Database, storage: Storage, tenant: str, export_id: str) -> None:
    """The row first: a crash in between leaves a file for `remove_orphans`, and no lie."""
    with db.write() as session:
        export = get_export(session, tenant, export_id)
        session.delete(export)
    _remove_folder(storage, export.storage_key.split("/")[1])


def remove_orphans(db: Database, storage: Storage) -> int:
    """Files without a row: their clustering was deleted, or their job did not end well."""
    root = storage.path(_ROOT)
    folders = {path.name for path in root.iterdir()} if root.is_dir() else set()
    with db.read() as session:
        # Open jobs first: one that ends in between has its row by then.
        kept = set(session.scalars(select(Job.id).where(Job.status.in_(OPEN))))
        kept |= {key.split("/")[1] for key in session.scalars(select(Export.storage_key))}
    for job_id in folders - kept:
        _remove_folder(storage, job_id)
    return len(folders - kept)


def _remove_folder(storage: Storage, job_id: str) -> None:
    shutil.rmtree(storage.path(f"{_ROOT}/{job_id}"), ignore_errors=True)
