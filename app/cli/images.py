"""`temi images`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from app.cli.connection import connect
from app.cli.options import AsJson, ImageId, ImageIds, OutFile, OutFileOrFolder, Yes, confirm
from app.cli.output import notices, percent, print_item, print_rows, print_saved, write_bytes
from app.cli.progress import transfer_progress
from app.cli.tables import short_name

app = typer.Typer(no_args_is_help=True, help="Show, download and delete single images.")


@app.command("show")
def show(ctx: typer.Context, image_id: ImageId, as_json: AsJson = False) -> None:
    """Show an image's metadata."""
    with connect(ctx) as client:
        print_item(client.image(image_id), as_json, f"Image {image_id}")


@app.command("labels")
def list_labels(ctx: typer.Context, image_id: ImageId, as_json: AsJson = False) -> None:
    """List the labels of an image in all clusterings."""
    with connect(ctx) as client:
        print_rows(
            client.image_labels(image_id),
            as_json,
            f"Labels of {image_id}",
            ["clustering", ">cluster", "label", ">probability"],
            lambda found: (
                found.clustering_id,
                "-" if found.cluster_id is None else found.cluster_id,
                "excluded" if found.excluded else found.label or "",
                percent(found.probability),
            ),
        )


@app.command("neighbors")
def list_neighbors(
    ctx: typer.Context,
    image_id: ImageId,
    limit: Annotated[int, typer.Option(min=1, max=100, help="Number of images.")] = 24,
    as_json: AsJson = False,
) -> None:
    """List the images of the dataset that are most similar to an image."""
    with connect(ctx) as client:
        print_rows(
            client.neighbors(image_id, limit=limit),
            as_json,
            f"Images similar to {image_id}",
            ["image", "name", ">similarity"],
            lambda found: (found.image_id, found.name, f"{found.similarity:.3f}"),
        )


@app.command("download")
def download(ctx: typer.Context, image_id: ImageId, out: OutFileOrFolder = None) -> None:
    """Download an image file; resume an interrupted download."""
    with connect(ctx) as client:
        target = out or Path()
        if target.is_dir():
            target = target / (short_name(client.image(image_id).name) or image_id)
        with transfer_progress(target.name) as progress:
            saved = client.image_content(image_id, target, progress=progress)
    print_saved(saved)


@app.command("thumbnail")
def thumbnail(
    ctx: typer.Context,
    image_id: ImageId,
    out: OutFile,
    size: Annotated[
        Literal["64", "128", "256", "512"], typer.Option(help="Longer side in pixels.")
    ] = "256",
) -> None:
    """Download a thumbnail of an image (WebP)."""
    with connect(ctx) as client:
        write_bytes(out, client.thumbnail(image_id, int(size)))


@app.command("delete")
def delete(ctx: typer.Context, image_ids: ImageIds, yes: Yes = False) -> None:
    """Delete images from their datasets."""
    with connect(ctx) as client:
        confirm(f"Delete {len(image_ids):,} images ({client.image(image_ids[0]).name} ...)?", yes)
        for image_id in image_ids:
            client.delete_image(image_id)
            notices.print(f"Deleted {image_id}")
