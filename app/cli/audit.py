"""`temi audit`: who changed what."""

from datetime import datetime
from itertools import islice
from typing import Annotated

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, Limit
from app.cli.output import moment, print_rows


def audit(
    ctx: typer.Context,
    key: Annotated[str | None, typer.Option(help="Id of a key: only what it did.")] = None,
    since: Annotated[
        datetime | None, typer.Option(help="Not what was earlier, by the clock of this machine.")
    ] = None,
    limit: Limit = 100,
    as_json: AsJson = False,
) -> None:
    """List who changed what, newest first; needs a key with the scope admin."""
    with connect(ctx) as client:
        entries = client.audit(key_id=key, since=since.astimezone() if since else None)
        print_rows(
            islice(entries, limit),
            as_json,
            "Changes",
            ["at", "by", "key", "method", "path"],
            lambda e: (moment(e.at), e.key_name or "-", e.key_id or "-", e.method, e.path),
        )
