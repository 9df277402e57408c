"""Rows and files of finished exports."""

import re

from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from app.core.exports.formats import FORMATS, FormatName
from app.core.platform.db import Database
from app.core.platform.errors import NotFound
from app.core.platform.tables import Export
from app.core.storage import Storage
from app.core.storage.deletion.retention import delete_unless_retained

_NAME_BYTES = 80


def export_filename(dataset_name: str, revision: int, format_: FormatName) -> str:
    """For example `holiday-photos-rev3.parquet`."""
    words = re.sub(r"\W+", "-", dataset_name).encode()[:_NAME_BYTES].decode(errors="ignore")
    return f"{words.strip('-_') or 'dataset'}-rev{revision}{FORMATS[format_].ending}"


def get_export(session: Session, tenant: str, export_id: str) -> Export:
    found = session.scalar(select(Export).where(Export.id == export_id, Export.tenant == tenant))
    if found is None:
        raise NotFound(f"There is no export {export_id}.")
    return found


def select_exports(tenant: str, clustering_id: str | None) -> Select[Export]:
    query = select(Export).where(Export.tenant == tenant)
    return query.where(Export.clustering_id == clustering_id) if clustering_id else query


def delete_export(db: Database, storage: Storage, tenant: str, export_id: str) -> None:
    with db.write() as session:
        export = get_export(session, tenant, export_id)
        session.delete(export)
    delete_unless_retained(db, storage, [export.storage_key])
