"""`temi audit`."""

from datetime import datetime
from itertools import islice
from typing import Annotated

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, Limit
from app.cli.output import format_time, print_rows


def audit(
    ctx: typer.Context,
    key: Annotated[str | None, typer.Option(help="Only requests with the key of this id.")] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Only entries from this local time on.")
    ] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List the audit log, newest first; needs a key with scope admin."""
    with connect(ctx) as client:
        entries = client.audit(key_id=key, since=since.astimezone() if since else None)
        print_rows(
            islice(entries, limit),
            as_json,
            "Audit log",
            ["time", "key name", "?key", "method", "path"],
            lambda e: (format_time(e.at), e.key_name or "-", e.key_id or "-", e.method, e.path),
        )
