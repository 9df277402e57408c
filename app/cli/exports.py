"""`temi exports`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.connection import connect, connect_for_transfer
from app.cli.options import (
    AsJson,
    ClusteringId,
    ExportId,
    Format,
    IncludeExcluded,
    MinProbability,
    MinPurity,
    OfClustering,
    OnlyClusters,
    OutFileOrFolder,
    PurityProof,
    Revision,
    Yes,
    confirm,
)
from app.cli.output import format_bytes, format_time, notices, print_item, print_rows, print_saved
from app.cli.progress import transfer_progress, wait_for_job
from temi_client import TemiClient

app = typer.Typer(no_args_is_help=True, help="Export clusterings to files.")


@app.command("list")
def list_exports(
    ctx: typer.Context, clustering_id: OfClustering = None, as_json: AsJson = False
) -> None:
    """List exports, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.exports(clustering_id=clustering_id),
            as_json,
            "Exports",
            ["id", "format", "file", "?>images", "?>size", "?>revision", "?created", "?clustering"],
            lambda e: (
                *(e.id, e.format, e.filename, e.image_count, format_bytes(e.bytes)),
                *(e.revision, format_time(e.created_at), e.clustering_id),
            ),
        )


@app.command("show")
def show(ctx: typer.Context, export_id: ExportId, as_json: AsJson = False) -> None:
    """Show an export."""
    with connect(ctx) as client:
        print_item(client.get_export(export_id), as_json, f"Export {export_id}")


@app.command("create")
def create(
    ctx: typer.Context,
    clustering_id: ClusteringId,
    format: Format,
    out: OutFileOrFolder = None,
    revision: Revision = None,
    cluster_ids: OnlyClusters = None,
    min_probability: MinProbability = None,
    min_purity: MinPurity = None,
    proof: PurityProof = None,
    include_excluded: IncludeExcluded = None,
    validation_fraction: Annotated[
        float | None,
        typer.Option(min=0, max=0.9, help="Share of each class for validation; default: 0."),
    ] = None,
    split_seed: Annotated[
        int | None, typer.Option(min=0, help="Chooses another split; default: 0.")
    ] = None,
    image_url_base: Annotated[
        str | None, typer.Option(help="Address of the service, before links to images.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Export a clustering and download the file."""
    with connect_for_transfer(ctx) as client:
        job = client.export(
            clustering_id,
            format,
            revision=revision,
            cluster_ids=cluster_ids,
            min_probability=min_probability,
            min_purity=min_purity,
            proof=proof,
            include_excluded=include_excluded,
            validation_fraction=validation_fraction,
            split_seed=split_seed,
            image_url_base=image_url_base,
        )
        result = wait_for_job(client, job).result or {}
        export_id = str(result["export_id"])
        if result.get("left_out"):
            text = f"Left out {result['left_out']:,} images whose labels are not proven so pure."
            notices.print(text, markup=False)
        _download(client, export_id, out)
        if as_json:
            print_item(client.get_export(export_id), as_json, f"Export {export_id}")


@app.command("download")
def download(ctx: typer.Context, export_id: ExportId, out: OutFileOrFolder = None) -> None:
    """Download an export; resume an interrupted download."""
    with connect_for_transfer(ctx) as client:
        _download(client, export_id, out)


@app.command("delete")
def delete(ctx: typer.Context, export_id: ExportId, yes: Yes = False) -> None:
    """Delete an export and its file."""
    with connect(ctx) as client:
        export = client.get_export(export_id)
        what = f"export {export.filename} with {export.image_count:,} images"
        confirm(f"Delete {what}?", yes)
        client.delete_export(export_id)
    notices.print(f"Deleted {what} ({export_id})", markup=False)


def _download(client: TemiClient, export_id: str, out: Path | None) -> None:
    with transfer_progress("download") as progress:
        saved = client.download_export(export_id, out or Path(), progress=progress)
    print_saved(saved)
