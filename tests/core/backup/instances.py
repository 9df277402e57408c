"""Instances with data to back up, and empty ones to restore into."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import select

from app.core.access.keys import create_key
from app.core.backup.rows import tables
from app.core.platform.settings import Settings
from app.core.runtime import Runtime
from tests.core.storage.deletion.small_service import SmallService

MakeInstance = Callable[..., Runtime]
LARGE = b"f" * 3_000_000  # more than is held in memory at once


def open_instance(
    folder: Path, template: Path, postgres_url: str | None, **changes: Any
) -> Runtime:
    folder.mkdir()
    if postgres_url is None:
        shutil.copy(template, folder / "temi.db")
    url = postgres_url or ""
    return Runtime(Settings(_env_file=None, data_dir=folder, database_url=url, **changes))


def fill(runtime: Runtime) -> SmallService:
    """Images, a job of each state, features, clusterings, models, exports, a key."""
    service = SmallService(runtime)
    for number in range(4):
        service.store_bytes(number, number)
    service.write_rows()
    for dataset in (0, 1, 1):
        service.start_job(dataset)
        service.end_job(0, succeeded=True)
    with runtime.db.write() as session:
        create_key(session, tenant="t", name="phone", scopes=["read"])
    service.start_job(0)
    service.start_job(1)
    job = service.job(0, "queued")
    assert job is not None
    runtime.storage.write(f"{service.folder(job)}/neighbors-5.npy", LARGE)
    return service


def rows(runtime: Runtime, *beside: str) -> dict[str, list[str]]:
    """All rows of the tables of a backup, in a form that is equal for both databases."""
    with runtime.db.read() as session:
        return {
            table.name: sorted(
                json.dumps(list(row), sort_keys=True) for row in session.execute(select(table))
            )
            for table in tables()
            if table.name not in beside
        }


def files(runtime: Runtime) -> dict[str, bytes]:
    kinds = ("sha256", "embeddings", "jobs", "models", "exports", "uploads", "listings")
    found = (file.key for kind in kinds for file in runtime.storage.list(kind))
    return {key: runtime.storage.read(key) for key in found}
