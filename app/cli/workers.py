"""`temi workers`."""

from itertools import islice

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, Limit
from app.cli.output import format_time, print_rows

app = typer.Typer(no_args_is_help=True, help="List workers.")


@app.command("list")
def list_workers(ctx: typer.Context, limit: Limit = None, as_json: AsJson = False) -> None:
    """List active workers."""
    with connect(ctx) as client:
        print_rows(
            islice(client.workers(), limit),
            as_json,
            "Workers",
            ["name", "takes", "?device", "job", "?started", "?last seen"],
            lambda worker: (
                worker.name,
                ", ".join(worker.takes),
                worker.device,
                f"{worker.job_id or 'a job'} {worker.stage or ''}" if worker.busy else "-",
                format_time(worker.started_at),
                format_time(worker.seen_at),
            ),
        )
