"""`temi exports`: files of labels for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.connection import connect, connect_for_transfer
from app.cli.options import (
    AsJson,
    ClusteringId,
    ExportId,
    MinProbability,
    OutFileOrFolder,
    Revision,
    Yes,
    confirm,
)
from app.cli.output import moment, notices, print_item, print_rows, print_saved, size
from app.cli.progress import follow
from app.cli.start import Format, OnlyClusters, WithExcluded
from app.cli.transfers import transfer
from temi_client import TemiClient

app = typer.Typer(no_args_is_help=True, help="Files of labels for other programs.")


@app.command("list")
def list_exports(
    ctx: typer.Context,
    clustering: Annotated[str | None, typer.Option(help="Only this one's.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the exports, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.exports(clustering_id=clustering),
            as_json,
            "Exports",
            ["id", "format", "file", ">images", ">size", ">revision", "clustering", "created"],
            lambda e: (
                *(e.id, e.format, e.filename, e.image_count, size(e.bytes)),
                *(e.revision, e.clustering_id, moment(e.created_at)),
            ),
        )


@app.command("show")
def show(ctx: typer.Context, export_id: ExportId, as_json: AsJson = False) -> None:
    """Show one export."""
    with connect(ctx) as client:
        print_item(client.get_export(export_id), as_json, f"Export {export_id}")


@app.command("create")
def create(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    format_: Format,
    out: OutFileOrFolder = None,
    revision: Revision = None,
    cluster: OnlyClusters = None,
    min_probability: MinProbability = None,
    include_excluded: WithExcluded = False,
    as_json: AsJson = False,
) -> None:
    """Write a clustering to a file, wait for it, and download it."""
    with connect_for_transfer(ctx) as client:
        job = client.export(
            clustering_id,
            format_,
            revision=revision,
            cluster_ids=cluster or None,
            min_probability=min_probability,
            include_excluded=include_excluded or None,
        )
        export_id = str((follow(client, job).result or {})["export_id"])
        _download(client, export_id, out)
        if as_json:
            print_item(client.get_export(export_id), as_json, f"Export {export_id}")


@app.command("download")
def download(ctx: typer.Context, export_id: ExportId, out: OutFileOrFolder = None) -> None:
    """Save an export, checked against its hash; a download that broke off is continued."""
    with connect_for_transfer(ctx) as client:
        _download(client, export_id, out)


@app.command("delete")
def delete(ctx: typer.Context, export_id: ExportId, yes: Yes = False) -> None:
    """Delete an export and its file."""
    with connect(ctx) as client:
        confirm(f"Delete {export_id}?", yes)
        client.delete_export(export_id)
    notices.print(f"Deleted {export_id}")


def _download(client: TemiClient, export_id: str, out: Path | None) -> None:
    with transfer("download") as progress:
        saved = client.download_export(export_id, out or Path(), progress=progress)
    print_saved(saved)
