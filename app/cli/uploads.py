"""`temi uploads`: files in pieces that survive a broken line."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.connection import connect, connect_for_transfer
from app.cli.options import AsJson, Yes, confirm
from app.cli.output import notices, print_item
from app.cli.transfers import transfer

app = typer.Typer(no_args_is_help=True, help="Resumable uploads.")

UploadId = Annotated[str, typer.Argument(metavar="UPLOAD", help="Its id or address.")]


@app.command("send")
def send(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="FILE")],
    resume: Annotated[
        str | None, typer.Option(metavar="UPLOAD", help="Go on with one that broke off.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send an archive; `temi datasets create --resume` makes a dataset of it."""
    with connect_for_transfer(ctx) as client, transfer("upload") as progress:
        upload = client.upload_resumable(file, upload=resume, progress=progress)
    print_item(upload, as_json, f"Upload {upload.id}")


@app.command("show")
def show(ctx: typer.Context, upload_id: UploadId, as_json: AsJson = False) -> None:
    """Show how much of an upload has arrived."""
    with connect(ctx) as client:
        print_item(client.upload_state(upload_id), as_json, "Upload")


@app.command("delete")
def delete(ctx: typer.Context, upload_id: UploadId, yes: Yes = False) -> None:
    """Drop an upload."""
    with connect(ctx) as client:
        confirm(f"Drop {upload_id}?", yes)
        client.delete_upload(upload_id)
    notices.print(f"Deleted {upload_id}", markup=False)
