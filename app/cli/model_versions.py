"""`temi models history`, `rollback`, `delete`, `compare`, `export` and `import`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli import references
from app.cli.connection import connect, connect_for_transfer
from app.cli.options import Alias, AsJson, Name, OutFileOrFolder, VersionNumber, Yes, confirm
from app.cli.output import format_time, notices, print_item, print_rows, print_saved
from app.cli.progress import transfer_progress
from app.cli.tables import print_comparison

app = typer.Typer()


@app.command()
def history(ctx: typer.Context, name: Name, alias: Alias, as_json: AsJson = False) -> None:
    """List the changes of an alias, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.alias_history(name, alias),
            as_json,
            f"Changes of {name}@{alias}",
            [">number", "kind", ">from", ">to", "by", "at"],
            lambda c: (
                *(c.number, c.kind, c.before or "-", c.version or "-"),
                *(c.changed_by or "", format_time(c.changed_at)),
            ),
        )


@app.command()
def rollback(ctx: typer.Context, name: Name, alias: Alias, as_json: AsJson = False) -> None:
    """Set an alias back to its previous version."""
    with connect(ctx) as client:
        print_item(client.rollback_alias(name, alias), as_json, f"Model {name}")


@app.command()
def delete(
    ctx: typer.Context,
    name: Name,
    version: Annotated[
        int | None, typer.Argument(metavar="VERSION", min=1, help="Default: all versions.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete a model or one of its versions."""
    with connect(ctx) as client:
        count = sum(1 for _ in client.model_versions(name))
        what = f"version {version} of {count:,}" if version else f"all {count:,} versions"
        what += f" of model {name}"
        confirm(f"Delete {what}?", yes)
        if version is None:
            client.delete_model(name)
        else:
            client.delete_version(name, version)
    notices.print(f"Deleted {what}", markup=False)


@app.command()
def compare(
    ctx: typer.Context,
    name: Name,
    left: Annotated[int, typer.Argument(metavar="LEFT", min=1)],
    right: Annotated[int, typer.Argument(metavar="RIGHT", min=1)],
    dataset: Annotated[
        str | None,
        typer.Option(
            help="Dataset that both versions have clustered; needed if there are several.",
            callback=references.dataset_id,
            autocompletion=references.complete_datasets,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two versions of a model."""
    with connect(ctx) as client:
        found = client.compare_versions(name, left, right, dataset_id=dataset)
    if as_json:
        print_item(found, as_json, "")
    else:
        print_comparison(found)


@app.command()
def export(
    ctx: typer.Context, name: Name, version: VersionNumber, out: OutFileOrFolder = None
) -> None:
    """Download a model version as one file."""
    with connect_for_transfer(ctx) as client, transfer_progress("download") as progress:
        saved = client.export_version(name, version, out or Path(), progress=progress)
    print_saved(saved)


@app.command("import")
def import_(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, metavar="FILE")
    ],
    name: Annotated[str | None, typer.Option(help="Default: the name in the file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register a model version from an exported file."""
    with connect_for_transfer(ctx) as client, transfer_progress("upload") as progress:
        version = client.import_version(file, name=name, progress=progress)
    if as_json:
        print_item(version, as_json, "")
    else:
        notices.print(f"Registered {version.name}, version {version.version}", markup=False)
