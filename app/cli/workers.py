"""`temi workers`: who works for the service."""

from itertools import islice

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, Limit
from app.cli.output import moment, print_rows

app = typer.Typer(no_args_is_help=True, help="Workers of the service.")


@app.command("list")
def list_workers(ctx: typer.Context, limit: Limit = None, as_json: AsJson = False) -> None:
    """List the workers that were heard of lately."""
    with connect(ctx) as client:
        print_rows(
            islice(client.workers(), limit),
            as_json,
            "Workers",
            ["name", "takes", "device", "works on", "since", "seen"],
            lambda worker: (
                worker.name,
                ", ".join(worker.takes),
                worker.device,
                f"{worker.job_id or 'a job'} {worker.stage or ''}" if worker.busy else "-",
                moment(worker.started_at),
                moment(worker.seen_at),
            ),
        )
