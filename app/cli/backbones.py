"""`temi backbones`: what computes the features, and the download of weights."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from app.cli.errors import FAILED, USAGE, print_error
from app.cli.options import AsJson
from app.cli.output import format_bytes, notices, print_fields, print_table
from app.cli.progress import transfer_progress
from app.core.models.backbones import auto_backbone_name
from app.core.platform.settings import get_settings
from temi.backbones.auto import AUTO
from temi.backbones.catalog import list_backbones

app = typer.Typer(
    invoke_without_command=True, help="List named backbones and download their weights."
)

FetchedName = Annotated[
    str, typer.Argument(metavar="NAME", help="A short name, timm:NAME or open_clip:NAME/TAG.")
]


@app.callback()
def backbones(ctx: typer.Context, as_json: AsJson = False) -> None:
    """Lists the backbones if no command follows."""
    if ctx.invoked_subcommand is None:
        list_named(as_json)


@app.command("list")
def list_named(as_json: AsJson = False) -> None:
    """List named backbones; `timm:NAME` and `open_clip:NAME/PRETRAINED` work as well."""
    settings = get_settings()
    infos = list_backbones(settings.weights_dir)
    if as_json:
        print(json.dumps([asdict(one) for one in infos], indent=2))
        return
    rows = [(one.name, one.dim, one.description, one.hint or "ready") for one in infos]
    print_table("Backbones", ("name", ">features", "description", "weights"), rows)
    notices.print(f"{AUTO} would choose {auto_backbone_name(settings) or 'none'} here.")


@app.command("fetch")
def fetch(name: FetchedName, as_json: AsJson = False) -> None:
    """Download the weights of a backbone into TEMI_WEIGHTS_DIR."""
    folder = get_settings().weights_dir
    if folder is None:
        print_error(
            "TEMI_WEIGHTS_DIR is not set. Set it to a folder for weights, also where the service "
            "is started: export TEMI_WEIGHTS_DIR=$PWD/weights"
        )
        raise typer.Exit(USAGE)

    from temi.backbones.fetching import fetch_weights  # imports torch
    from temi.errors import TemiError

    try:
        with transfer_progress(name) as progress:
            fetched = fetch_weights(name, folder, progress=progress)
    except TemiError as error:
        print_error(str(error))
        raise typer.Exit(FAILED) from error
    if as_json:
        print(json.dumps(asdict(fetched) | {"path": str(fetched.path)}, indent=2))
        return
    source = fetched.repository or "nowhere: the file was there already"
    fields = {
        "file": fetched.path,
        "size": format_bytes(fetched.bytes),
        "sha256": fetched.sha256,
        "fetched from": source,
    }
    print_fields(f"Weights of {name}", fields.items())
