"""Listings of a folder or a bucket, stored once, so that a resumed job reads the same members."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from app.core.platform.activity import reporting
from app.core.platform.errors import ArchiveTooLarge
from app.core.storage import Storage
from app.core.storage.keys import listing_key


def write_listing(
    storage: Storage, job_id: str, rows: Iterable[dict[str, Any]], max_rows: int
) -> None:
    """Stores the listing unless the job has one: a worker that lost its lease cannot change it."""
    if storage.exists(listing_key(job_id)):
        return
    with storage.writing(listing_key(job_id), replace=False) as file:
        for number, row in enumerate(reporting(rows)):
            if number >= max_rows:
                raise ArchiveTooLarge(
                    f"The source has more than {max_rows:,} files (TEMI_MAX_ARCHIVE_MEMBERS)."
                )
            file.write(json.dumps(row).encode() + b"\n")


def read_listing(storage: Storage, job_id: str) -> Iterator[dict[str, Any]]:
    with storage.path(listing_key(job_id)).open("rb") as file:
        for line in file:
            yield json.loads(line)


def count_listing(storage: Storage, job_id: str) -> int:
    with storage.path(listing_key(job_id)).open("rb") as file:
        return sum(1 for _ in file)
