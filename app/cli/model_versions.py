"""`temi models`: versions that are compared, moved back, deleted, and carried elsewhere."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.comparison import print_comparison
from app.cli.connection import connect, connect_for_transfer
from app.cli.models import Alias, Name, VersionNumber
from app.cli.options import AsJson, OutFileOrFolder, Yes, confirm
from app.cli.output import moment, notices, print_item, print_rows, print_saved
from app.cli.transfers import transfer


def history(ctx: typer.Context, name: Name, alias: Alias, as_json: AsJson = False) -> None:
    """List the moves of an alias, newest first."""
    with connect(ctx) as client:
        print_rows(
            client.alias_history(name, alias),
            as_json,
            f"Moves of {name}@{alias}",
            [">number", "kind", ">from", ">to", "by", "at"],
            lambda c: (
                *(c.number, c.kind, c.before or "-", c.version or "-"),
                *(c.changed_by or "", moment(c.changed_at)),
            ),
        )


def rollback(ctx: typer.Context, name: Name, alias: Alias, as_json: AsJson = False) -> None:
    """Point an alias at the version that it pointed to before."""
    with connect(ctx) as client:
        print_item(client.rollback_alias(name, alias), as_json, f"Model {name}")


def delete(
    ctx: typer.Context,
    name: Name,
    version: Annotated[
        int | None, typer.Argument(metavar="[VERSION]", min=1, help="By default all.")
    ] = None,
    yes: Yes = False,
) -> None:
    """Delete a version, or a model with all its versions."""
    what = f"{name}, all versions" if version is None else f"version {version} of {name}"
    with connect(ctx) as client:
        confirm(f"Delete {what}?", yes)
        if version is None:
            client.delete_model(name)
        else:
            client.delete_version(name, version)
    notices.print(f"Deleted {what}", markup=False)


def compare(
    ctx: typer.Context,
    name: Name,
    left: Annotated[int, typer.Argument(metavar="LEFT", min=1)],
    right: Annotated[int, typer.Argument(metavar="RIGHT", min=1)],
    dataset: Annotated[
        str | None, typer.Option(help="One that both have clustered, if there are several.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show what differs between two versions and where images move."""
    with connect(ctx) as client:
        found = client.compare_versions(name, left, right, dataset_id=dataset)
    if as_json:
        print_item(found, as_json, "")
    else:
        print_comparison(found)


def export(
    ctx: typer.Context, name: Name, version: VersionNumber, out: OutFileOrFolder = None
) -> None:
    """Save a version as one file, for another service."""
    with connect_for_transfer(ctx) as client, transfer("download") as progress:
        saved = client.export_version(name, version, out or Path(), progress=progress)
    print_saved(saved)


def import_(
    ctx: typer.Context,
    file: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, readable=True, metavar="FILE")
    ],
    name: Annotated[str | None, typer.Option(help="By default that of the file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Register a version from a file that was exported."""
    with connect_for_transfer(ctx) as client, transfer("upload") as progress:
        version = client.import_version(file, name=name, progress=progress)
    if as_json:
        print_item(version, as_json, "")
    else:
        notices.print(f"Registered {version.name}, version {version.version}", markup=False)


def add_commands(app: typer.Typer) -> None:
    for command in (history, rollback, delete, compare, export):
        app.command(command.__name__)(command)
    app.command("import")(import_)
