"""`temi jobs`."""

from itertools import islice
from typing import Annotated, Literal

import typer

from app.cli import job_start
from app.cli.connection import connect
from app.cli.job_report import print_result, print_state
from app.cli.options import AsJson, JobId, Limit, OfDataset, OutFile, Wait, Yes, confirm
from app.cli.output import format_time, notices, print_item, print_rows, print_saved, write_bytes
from app.cli.progress import report_job, show_progress, transfer_progress
from temi_client import JobPlotName, JobStatus, ListedKind

app = typer.Typer(no_args_is_help=True, help="Start and manage jobs.")
app.add_typer(job_start.app, name="start")


@app.command("list")
def list_jobs(
    ctx: typer.Context,
    kind: Annotated[ListedKind | None, typer.Option(help="Only jobs of this kind.")] = None,
    status: Annotated[JobStatus | None, typer.Option(help="Only jobs with this status.")] = None,
    dataset_id: OfDataset = None,
    limit: Limit = None,
    as_json: AsJson = False,
) -> None:
    """List jobs, newest first."""
    with connect(ctx) as client:
        print_rows(
            islice(client.jobs(kind=kind, status=status, dataset_id=dataset_id), limit),
            as_json,
            "Jobs",
            ["id", "kind", "status", "?progress", "?created", "?dataset"],
            lambda job: (
                job.id,
                job.kind,
                job.status,
                f"{job.progress.stage or ''} {job.progress.completed}/{job.progress.total}",
                format_time(job.created_at),
                job.dataset_id or "",
            ),
        )


@app.command("show")
def show(
    ctx: typer.Context,
    job_id: JobId,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Print the configuration and all figures, too.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show a job and what came out of it."""
    with connect(ctx) as client:
        job = client.job(job_id)
        if as_json or verbose:
            return print_item(job, as_json, f"Job {job_id}")
        print_state(job)
        if job.status == "succeeded":
            print_result(client, job)
        return None


@app.command("wait", hidden=True)
@app.command("watch")
def watch(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Watch a job until it ends; exit with 1 if it does not succeed."""
    with connect(ctx) as client:
        job = show_progress(client.watch(job_id))
        if as_json:
            return print_item(job, as_json, f"Job {job_id}")
        notices.print(f"{job.id} succeeded")
        return print_result(client, job)


@app.command("cancel")
def cancel(ctx: typer.Context, job_id: JobId, as_json: AsJson = False) -> None:
    """Cancel a job."""
    with connect(ctx) as client:
        job = client.cancel(job_id)
    if as_json:
        print_item(job, as_json, f"Job {job_id}")
    notices.print(f"{job.id} {job.status}")


@app.command("retry")
def retry(ctx: typer.Context, job_id: JobId, wait: Wait = False, as_json: AsJson = False) -> None:
    """Retry a failed or cancelled job."""
    with connect(ctx) as client:
        report_job(client, client.retry(job_id), wait, as_json)


@app.command("delete")
def delete(ctx: typer.Context, job_id: JobId, yes: Yes = False) -> None:
    """Delete a finished job; its results stay."""
    with connect(ctx) as client:
        job = client.job(job_id)
        what = f"the {job.kind} job of {format_time(job.created_at)}"
        confirm(f"Delete {what}, with its log and curves? Its results stay.", yes)
        client.delete_job(job_id)
    notices.print(f"Deleted {what} ({job_id})", markup=False)


@app.command("logs")
def logs(ctx: typer.Context, job_id: JobId, limit: Limit = None, as_json: AsJson = False) -> None:
    """Show the log of a job."""
    with connect(ctx) as client:
        print_rows(
            islice(client.logs(job_id), limit),
            as_json,
            f"Log of {job_id}",
            ["time", "level", "message"],
            lambda line: (f"{line.at:%H:%M:%S}", line.level, line.message),
        )


@app.command("curves")
def curves(ctx: typer.Context, job_id: JobId, limit: Limit = None, as_json: AsJson = False) -> None:
    """Show the training curves of a job."""
    with connect(ctx) as client:
        print_rows(
            islice(client.curves(job_id), limit),
            as_json,
            f"Curves of {job_id}",
            [">step", "values"],
            lambda point: (
                point.step,
                "  ".join(f"{name} {_number(value)}" for name, value in point.values.items()),
            ),
        )


@app.command("map")
def download_map(ctx: typer.Context, job_id: JobId, out: OutFile) -> None:
    """Download the points of a map job (Arrow)."""
    with connect(ctx) as client, transfer_progress(out.name) as progress:
        saved = client.download_map(job_id, out, progress=progress)
    print_saved(saved)


@app.command("plot")
def plot(
    ctx: typer.Context,
    job_id: JobId,
    out: OutFile,
    name: Annotated[JobPlotName, typer.Argument(help="Name of the plot.")] = "sweep",
) -> None:
    """Download a plot of a sweep (PNG, or SVG if --out ends with .svg)."""
    kind: Literal["png", "svg"] = "svg" if out.suffix.lower() == ".svg" else "png"
    with connect(ctx) as client:
        write_bytes(out, client.job_plot(job_id, name, format=kind))


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
