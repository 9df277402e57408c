"""`temi datasets search`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import references
from app.cli.connection import connect_for_transfer
from app.cli.options import AsJson, DatasetId
from app.cli.output import print_rows

app = typer.Typer()

Photo = Annotated[
    Path | None, typer.Argument(exists=True, dir_okay=False, metavar="PHOTO", help="An image file.")
]


@app.command()
def search(
    ctx: typer.Context,
    dataset_id: DatasetId,
    photo: Photo = None,
    image_id: Annotated[
        str | None, typer.Option("--image-id", help="Image of a dataset, instead of a file.")
    ] = None,
    text: Annotated[
        str | None,
        typer.Option(help="What the images show; the dataset needs features of a CLIP backbone."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Number of images.")] = 50,
    clustering: Annotated[
        str | None,
        typer.Option(
            help="Whose features are compared; default: the current clustering.",
            callback=references.clustering_id,
            autocompletion=references.complete_clusterings,
        ),
    ] = None,
    cluster_id: Annotated[
        int | None, typer.Option("--cluster", min=0, help="Only images of this cluster.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the images of a dataset that are most like a photo or a text."""
    if [photo, image_id, text].count(None) != 2:
        raise typer.BadParameter("Pass one of PHOTO, --image-id and --text.")
    with connect_for_transfer(ctx) as client:
        found = client.search(
            dataset_id,
            photo,
            image_id=image_id,
            text=text,
            limit=limit,
            clustering_id=clustering,
            cluster_id=cluster_id,
        )
    print_rows(
        found.data,
        as_json,
        f"Images like {photo or image_id or text}",
        ["image", "name", ">similarity", "?>cluster", "?label"],
        lambda one: (
            *(one.image_id, one.name, f"{one.similarity:.3f}"),
            *("-" if one.cluster_id is None else one.cluster_id, one.label or ""),
        ),
    )
