"""`temi jobs`: list, watch, cancel."""

from typing import Annotated

import typer

from app.cli.options import DEFAULT_SERVER, ApiKey, AsJson, Server, connect
from app.cli.output import notices, print_json, print_table
from app.cli.progress import show_progress
from temi_client import JobFailed

app = typer.Typer(no_args_is_help=True, help="Jobs of the service.")

JobId = Annotated[str, typer.Argument(metavar="JOB")]


@app.command("list")
def list_jobs(
    server: Server = DEFAULT_SERVER, api_key: ApiKey = None, as_json: AsJson = False
) -> None:
    """List the jobs, newest first."""
    with connect(server, api_key) as client:
        found = list(client.jobs())
    if as_json:
        return print_json(found)
    rows = (
        (
            job.id,
            job.kind,
            job.status,
            f"{job.progress.stage or ''} {job.progress.completed}/{job.progress.total}",
            job.dataset_id,
            f"{job.created_at:%Y-%m-%d %H:%M}",
        )
        for job in found
    )
    return print_table("Jobs", ["id", "kind", "status", "progress", "dataset", "created"], rows)


@app.command("watch")
def watch(job_id: JobId, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Follow a job until it ends; exit code 1 if it does not succeed."""
    with connect(server, api_key) as client:
        job = show_progress(client.watch(job_id))
    if job.status != "succeeded":
        raise JobFailed(job)
    notices.print(f"{job.id} succeeded")


@app.command("cancel")
def cancel(job_id: JobId, server: Server = DEFAULT_SERVER, api_key: ApiKey = None) -> None:
    """Ask a job to stop."""
    with connect(server, api_key) as client:
        job = client.cancel(job_id)
    notices.print(f"{job.id} {job.status}")
