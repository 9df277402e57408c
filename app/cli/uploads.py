"""`temi uploads`: resumable uploads."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.connection import connect, connect_for_transfer
from app.cli.options import AsJson, Yes, confirm
from app.cli.output import format_bytes, notices, print_item
from app.cli.progress import transfer_progress

app = typer.Typer(no_args_is_help=True, help="Send archives as resumable uploads.")

UploadId = Annotated[str, typer.Argument(metavar="UPLOAD", help="Id or URL of the upload.")]


@app.command("send")
def send(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, metavar="FILE")],
    resume: Annotated[
        str | None, typer.Option(metavar="UPLOAD", help="Resume an interrupted upload.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Upload an archive; `temi datasets create FILE --resume UPLOAD` uses it."""
    with connect_for_transfer(ctx) as client, transfer_progress("upload") as progress:
        upload = client.upload_resumable(file, upload=resume, progress=progress)
    print_item(upload, as_json, f"Upload {upload.id}")


@app.command("show")
def show(ctx: typer.Context, upload_id: UploadId, as_json: AsJson = False) -> None:
    """Show the state of an upload."""
    with connect(ctx) as client:
        print_item(client.upload_state(upload_id), as_json, "Upload")


@app.command("delete")
def delete(ctx: typer.Context, upload_id: UploadId, yes: Yes = False) -> None:
    """Delete an upload."""
    with connect(ctx) as client:
        upload = client.upload_state(upload_id)
        arrived = f"{format_bytes(upload.offset)} of {format_bytes(upload.length)}"
        confirm(f"Delete upload {upload_id} with {arrived}?", yes)
        client.delete_upload(upload_id)
    notices.print(f"Deleted {upload_id}", markup=False)
