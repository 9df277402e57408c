"""`temi predict`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.connection import connect
from app.cli.errors import FAILED
from app.cli.options import AsJson, ModelReference
from app.cli.output import print_json
from app.cli.tables import print_predictions

Files = Annotated[
    list[Path] | None,
    typer.Argument(exists=True, dir_okay=False, readable=True, metavar="FILES"),
]
ImageIds = Annotated[
    list[str] | None,
    typer.Option("--image-id", help="Image of a dataset, instead of files; repeatable."),
]


def predict(
    ctx: typer.Context,
    model: ModelReference,
    files: Files = None,
    image_ids: ImageIds = None,
    top_k: Annotated[int, typer.Option("--top-k", min=1, help="Number of clusters per image.")] = 3,
    as_json: AsJson = False,
) -> None:
    """Label images with a model."""
    if bool(files) == bool(image_ids):
        raise typer.BadParameter("Pass either FILES or --image-id.")
    with connect(ctx) as client:
        if image_ids:
            predictions = client.predict_images(model, image_ids, top_k=top_k)
        else:
            predictions = client.predict(model, files or [], top_k=top_k)
    if as_json:
        print_json(predictions.data)
    else:
        print_predictions(predictions)
    if all(found.error for found in predictions.data):
        raise typer.Exit(FAILED)
