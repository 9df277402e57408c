"""`temi gc`: removes unreferenced files at once; workers do the same in small steps."""

from collections import defaultdict
from typing import Annotated

import typer
from pydantic import BaseModel

from app.cli.local_runtime import open_runtime
from app.cli.options import AsJson
from app.cli.output import format_bytes, notices, print_rows

_NAMES = {"sha256": "images"}


class Removed(BaseModel):
    kind: str
    files: int
    bytes: int


def gc(
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the files without removing them.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Remove unreferenced files from the storage."""
    from app.core.storage.deletion.retention import is_retained

    files: dict[str, int] = defaultdict(int)
    sizes: dict[str, int] = defaultdict(int)
    with open_runtime() as runtime:
        with runtime.db.read() as session:
            if is_retained(session) and not dry_run:
                notices.print("A backup is running; no files are removed until it ends.")
        for garbage in runtime.collector.collect(dry_run=dry_run):
            kind = _NAMES.get(garbage.kind, garbage.kind)
            files[kind] += len(garbage.files)
            sizes[kind] += garbage.bytes
    rows = [Removed(kind=kind, files=files[kind], bytes=sizes[kind]) for kind in sorted(files)]
    print_rows(
        rows,
        as_json,
        "Would be removed" if dry_run else "Removed",
        ["kind", ">files", ">size"],
        lambda row: (row.kind, row.files, format_bytes(row.bytes)),
    )
