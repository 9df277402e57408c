"""The members of a folder or a bucket, written down once, so that a resumed job finds the same."""

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
    """The first listing of a job stays: a worker that was thought dead cannot change it."""
    if storage.exists(listing_key(job_id)):
        return
    with storage.writing(listing_key(job_id), replace=False) as file:
        for number, row in enumerate(reporting(rows)):
            if number >= max_rows:
                raise ArchiveTooLarge(f"The source has more than {max_rows:,} files.")
            file.write(json.dumps(row).encode() + b"\n")


def read_listing(storage: Storage, job_id: str) -> Iterator[dict[str, Any]]:
    with storage.path(listing_key(job_id)).open("rb") as file:
        for line in file:
            yield json.loads(line)


def count_listing(storage: Storage, job_id: str) -> int:
    with storage.path(listing_key(job_id)).open("rb") as file:
        return sum(1 for _ in file)
